"""Takes a reply's text as the dialogue says it, tells the client, and hands on what can be spoken.

::

    Say deltas ─▶ messages ─▶ sentences ─▶ the voice
                     └──────▶ the client, as the text grows
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from voice_agent.call.timeline import Times
from voice_agent.call.turn import Turn
from voice_agent.call.wire import TranscriptMessage, Wire
from voice_agent.dialogue.reply import Say
from voice_agent.speech.splitter import SentenceSplitter

log = logging.getLogger(__name__)

MAX_REPLY_CHARACTERS = 20_000
"""Longest reply of one turn: over twenty minutes of speech. The rest is dropped and logged."""
MESSAGE_SEPARATOR = " "
"""Stands between two messages of one turn in the heard text."""


class _Message:
    """The message that is being received."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.text = ""
        self.told = 0
        self.splitter = SentenceSplitter()
        self.last: Say | None = None


class ReplyText:
    """The text of one turn's reply at a time.

    Args:
        speak: Takes what can be spoken: a sentence of a model, or a whole configured message.
    """

    def __init__(self, wire: Wire, times: Times, speak: Callable[[Turn, str, Say], None]) -> None:
        self._wire, self._times, self._speak = wire, times, speak
        self._message: _Message | None = None
        self._is_cut = False

    def begin(self) -> None:
        """A new reply follows."""
        self._message, self._is_cut = None, False

    def take(self, turn: Turn, say: Say) -> None:
        """Take the next piece."""
        if self._is_cut:
            return
        room = MAX_REPLY_CHARACTERS - len(turn.ledger.text)
        if len(say.text) > room:
            # From here on nothing: a shorter piece that fits would leave a hole in the text.
            self._is_cut = True
            log.warning("a reply exceeds %d characters and was cut", MAX_REPLY_CHARACTERS)
            say = replace(say, text=say.text[:room])
        if turn.timeline.first_text is None and say.text.strip():
            turn.timeline.first_text = self._times.since()
        message = self._message
        if message is None or message.number != say.message:
            self.end_message(turn)
            message = self._message = _Message(say.message)
            if turn.ledger.text and not turn.ledger.text[-1].isspace():
                turn.ledger.said(MESSAGE_SEPARATOR)
            turn.ledger.message_begins()
        message.text += say.text
        message.last = say
        turn.ledger.said(say.text, whole=say.record == "full")
        if say.source == "model":
            sentences = message.splitter.push(say.text)
            for sentence in sentences:
                self._sentence(turn, message, say, sentence)
            if sentences and not say.end:
                # Once per delta, however many sentences it holds: the client is shown how the text grows.
                self._wire.send(TranscriptMessage("agent", message.text[: message.told], final=False))
        if say.end:
            self.end_message(turn)

    def end_message(self, turn: Turn) -> None:
        """No more pieces of the open message follow, if there is one."""
        message, self._message = self._message, None
        if message is None or message.last is None:
            return
        if message.last.source == "model":
            for sentence in message.splitter.flush():
                self._sentence(turn, message, message.last, sentence)
        elif message.text:
            self._speak(turn, message.text, message.last)
        if message.text.strip():
            self._wire.send(TranscriptMessage("agent", message.text, final=True))

    def _sentence(self, turn: Turn, message: _Message, say: Say, sentence: str) -> None:
        message.told += len(sentence)
        self._speak(turn, sentence, say)
