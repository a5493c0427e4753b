"""The call on the terminal, as it happens: who speaks, what was heard, and how long each thing took."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from voice_agent.caller.account import Account, Said, TurnWords
from voice_agent.caller.conversation import Conversation, Moment, Turn
from voice_agent.caller.session import Closed, Happening, Opened, TurnMoment
from voice_agent.caller.verdict import figures
from voice_agent.caller.wire import AgentHangUp, Fault, Ready, TurnTimeline, Words

STEPS = {
    "endpoint": "endpoint",
    "transcript": "stt_final",
    "first token": "first_token",
    "first text": "first_text",
    "first audio": "first_audio",
}
"""Instants of a turn that are shown, as offsets from the end of the caller's speech: name, and key in the message."""

INTERRUPTION = {"pause": "pause", "decision": "decision", "cancel": "cancel"}
"""The same for a turn that was spoken over, as offsets from the caller's onset."""

SPEECH_END, ONSET = "speech_end", "barge_in_onset"


def heard_text(said: Said) -> Text:
    """Tell the agent's words apart: heard plainly, unheard struck out, and said to be so where styles do not show."""
    if said.heard is None:
        return Text(said.text)
    heard = said.heard.rstrip(" …")
    if not said.text.startswith(heard):
        return Text(said.heard)
    unheard = said.text[len(heard) :].strip()
    if not unheard:
        return Text(said.text)
    gap = " — " if heard else ""
    return Text(heard).append(f"{gap}not heard: ", style="dim italic").append(unheard, style="dim strike")


class Display:
    """Prints a call line by line. Its `observe` is fed everything the session reports."""

    def __init__(self, console: Console, conversation: Conversation, account: Account, *, signals_clear: bool) -> None:
        self._console, self._conversation, self._account = console, conversation, account
        self._signals_clear = signals_clear
        self._announced = False

    def observe(self, at: float, happening: Happening) -> None:
        """Print one happening, after the account has noted it."""
        changed = self._account.observe(at, happening)
        match happening:
            case Opened(seconds):
                self._print(at, "connected", "dim", Text(f"in {seconds * 1000:.0f} ms", style="dim"))
            case Ready(conversation, _) if conversation:
                self._print(at, "", "dim", Text(f"conversation {conversation}", style="dim"))
            case TurnMoment(moment, turn):
                self._print_moment(at, moment, turn)
            case Words(final=True) if changed is not None:
                self._print_words(at, happening)
            case TurnTimeline() if changed is not None:
                self._print_instants(at, changed)
            case Fault(code, message):
                self._print(at, "error", "red", Text(f"{message} [{code}]", style="red"))
            case AgentHangUp(reason):
                self._print(at, "agent", "bold green", Text(f"hangs up ({reason})", style="italic"))
            case Closed(reason):
                self._print(at, "ended", "dim", Text(reason, style="dim"))

    def _print_moment(self, at: float, moment: Moment, turn: Turn) -> None:
        if moment is Moment.LINE_STARTED and turn.spoken is not None:
            text = Text(turn.spoken.line.label)
            if turn.interrupted is not None:
                text.append("  barges in", style="bold red")
            self._print(at, "caller", "bold blue", text)
        elif moment is Moment.REPLY_STARTED:
            self._print_latencies(at, turn)

    def _print_latencies(self, at: float, turn: Turn) -> None:
        measured = figures(self._conversation, turn, signals_clear=self._signals_clear)
        text = Text()
        if measured.silenced is False and turn.interrupted is not None:
            text.append("agent was not silenced   ", style="bold red")
        elif measured.stop_s is not None:
            text.append("barge-in → last agent audio ").append(f"{measured.stop_s:.2f} s   ", style="bold red")
        if measured.response_s is not None:
            name = "connected → greeting " if turn.spoken is None else "end of speech → first audio "
            text.append(name).append(f"{measured.response_s:.2f} s", style="bold yellow")
        self._print(at, "", "", text)

    def _print_words(self, at: float, words: Words) -> None:
        if words.role == "user":
            self._print(at, "", "", Text("understood as ", style="dim").append(f"“{words.text}”", style="italic"))
            return
        announced, self._announced = self._announced, words.heard is None
        if not announced or words.heard is None:
            self._print(at, "agent", "bold green", heard_text(Said(words.text, words.heard)))
        elif words.heard.strip() != words.text.strip():
            label = "heard: " if words.heard.strip() else ""
            self._print(at, "", "", Text(label, style="dim").append_text(heard_text(Said(words.text, words.heard))))

    def _print_instants(self, at: float, turn: TurnWords) -> None:
        text = Text()
        for origin, steps in ((SPEECH_END, STEPS), (ONSET, INTERRUPTION)):
            for name, key in steps.items():
                if origin in turn.instants and key in turn.instants:
                    since = turn.instants[key] - turn.instants[origin]
                    text.append(f"  {name} ", style="dim").append(f"{since:+.2f}", style="cyan")
        if text:
            self._print(at, "", "", Text("agent's own account:", style="dim").append_text(text))

    def _print(self, at: float, who: str, style: str, what: Text) -> None:
        row = Table.grid(padding=(0, 2))
        row.add_column(width=7, justify="right")
        row.add_column(width=9)
        row.add_column(overflow="fold")
        row.add_row(Text(f"{at:.2f}", style="dim"), Text(who, style=style or "dim"), what)
        self._console.print(row)
