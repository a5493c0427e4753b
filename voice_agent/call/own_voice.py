"""What a call knows of the agent's own voice coming back: how it sounds (`echo`), and which words it said just now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from voice_agent.call.echo import FRAME_S, EchoGuard
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.vocabulary import ENGLISH, Vocabulary, words
from voice_agent.config import TurnTaking

LOOK_BACK_S = 1.5
"""Words that ended this long before a voice began may still be in it: half a second of way, the pre-roll."""
FEWEST_WORDS = 3
"""Fewer matching words may be chance, or the answer to a question ("Monday or Tuesday?")."""
MOST_OTHERS = 0.4
"""Share of words in an echo that a recogniser may get wrong."""
_LONG_WORD = 4


class OwnVoice:
    """Follows the agent's voice for one call: fed by the playout, asked by the ears and by whoever weighs words.

    Args:
        now: The event loop's time.
    """

    def __init__(self, options: TurnTaking, now: Callable[[], float], vocabulary: Vocabulary = ENGLISH) -> None:
        self._now, self._vocabulary = now, vocabulary
        self._tail_s = options.echo_tail_ms / 1000
        self._guard = EchoGuard(options.echo_margin_db, options.echo_tail_ms) if options.echo_guard else None
        self._ledgers: tuple[PlayoutLedger, ...] = ()
        self._aside = ""
        self._last_sound = float("-inf")

    def begin(self, ledger: PlayoutLedger) -> None:
        """A new reply speaks; what the one before said may still be on its way."""
        self._ledgers, self._aside = (*self._ledgers[-1:], ledger), ""

    def aside(self, text: str) -> None:
        """Words beside the reply, such as a filler."""
        self._aside = text

    def played(self, frame: bytes, at: float) -> None:
        """The agent's next 20 ms frame sounds from ``at`` on."""
        self._last_sound = max(self._last_sound, at + FRAME_S)
        if self._guard is not None:
            self._guard.played(frame, at)

    def explains(self, frame: bytes) -> bool:
        """Take the caller's next 20 ms frame; whether the agent's own voice explains all that is in it."""
        return self._guard is not None and self._guard.heard(frame, self._now())

    def said(self, text: str, onset: float) -> bool:
        """Whether ``text``, heard in a voice that began at ``onset``, is only what the agent has just said.

        A stop word that the agent did not say makes it the caller's; so does a beginning after the agent's last sound.
        """
        if self._guard is None or onset > self._last_sound + self._guard.delay_s + self._tail_s:
            return False
        heard = words(text)
        fewest = 1 if onset <= self._last_sound and self._guard.was_open_to_echo(onset) else FEWEST_WORDS
        if len(heard) < fewest:
            return False
        since = onset - LOOK_BACK_S
        own = words(" ".join([*(ledger.said_since(since) for ledger in self._ledgers), self._aside]))
        others = unmatched(heard, own)
        return len(others) <= MOST_OTHERS * len(heard) and not self._vocabulary.has_stop(" ".join(others))


def unmatched(heard: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of ``heard`` that are left when as many as possible are laid, in order, over ``own``.

    A recogniser may hear one word as two, or two as one: "north line" lies over "Northline".
    """
    # Most words laid over what follows from (row, column) on.
    table = [[0] * (len(own) + 1) for _ in range(len(heard) + 1)]
    for row in range(len(heard) - 1, -1, -1):
        for column in range(len(own) - 1, -1, -1):
            laid = [rows + table[row + rows][column + columns] for rows, columns in _steps(heard, own, row, column)]
            table[row][column] = max(table[row + 1][column], table[row][column + 1], *laid)
    rest: list[str] = []
    row = column = 0
    while row < len(heard):
        for rows, columns in _steps(heard, own, row, column) if column < len(own) else ():
            if rows + table[row + rows][column + columns] == table[row][column]:
                row, column = row + rows, column + columns
                break
        else:
            if column < len(own) and table[row][column + 1] == table[row][column]:
                column += 1
            else:
                rest.append(heard[row])
                row += 1
    return tuple(rest)


def _steps(heard: tuple[str, ...], own: tuple[str, ...], row: int, column: int) -> Iterator[tuple[int, int]]:
    """Yield how many words from ``row`` on sound like how many from ``column`` on."""
    for rows, columns in ((1, 1), (2, 1), (1, 2)):
        if row + rows > len(heard) or column + columns > len(own):
            continue
        one, other = "".join(heard[row : row + rows]), "".join(own[column : column + columns])
        # Two words joined are that one word only if nothing of them is left over.
        if _alike(one, other) and (rows == columns or abs(len(one) - len(other)) <= 1):
            yield rows, columns


def _alike(heard: str, own: str) -> bool:
    """The same word, as a recogniser might get it: long words may differ in their ends ("bill's", "billing")."""
    if heard == own:
        return True
    shorter = min(len(heard), len(own))
    if shorter < _LONG_WORD:
        return False
    common = next((at for at in range(shorter) if heard[at] != own[at]), shorter)
    return common >= max(_LONG_WORD, max(len(heard), len(own)) * 2 // 3)
