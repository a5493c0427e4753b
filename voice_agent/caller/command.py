"""``voice-agent call``: place a simulated call and see it answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from voice_agent.caller.account import Account, as_json
from voice_agent.caller.audio import RATES
from voice_agent.caller.conversation import SETTLE_S, TIMEOUT_S, Patience
from voice_agent.caller.display import Display
from voice_agent.caller.lines import Line, LineError, order_lines
from voice_agent.caller.recording import Recording
from voice_agent.caller.session import Session
from voice_agent.caller.wire import CallerWire, Destination
from voice_agent.diagnostics import RemediableError

ANSWERED, UNANSWERED, NOT_PLACED, INTERRUPTED = 0, 1, 2, 130
_ORDER = "voice_agent.caller.order"
_LINE_OPTIONS = ("say", "wav", "barge_in_at")


class OrderedCommand(click.Command):
    """Remembers the order in which the options that make up the caller's lines were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            ctx.meta[_ORDER] = [param.name for param in order if param.name in _LINE_OPTIONS]
        return super().parse_args(ctx, args)


# click keeps a command's help option, so it must be the same with and without the group around it.
@click.command("call", cls=OrderedCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--url", default="ws://127.0.0.1:8080/ws", show_default=True, help="Address of the agent's wire.")
@click.option(
    "--via", type=click.Choice(["ws", "webrtc"]), default="ws", show_default=True, help="The wire to call by."
)
@click.option("--say", multiple=True, metavar="TEXT", help="A line the caller speaks. Repeatable, spoken in order.")
@click.option(
    "--wav",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A line from a WAV file of any rate. Repeatable, in order with --say.",
)
@click.option(
    "--barge-in-at",
    multiple=True,
    type=float,
    metavar="S",
    help="Speak the line that follows S seconds after the agent began its reply, over that reply.",
)
@click.option(
    "--record",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write call.wav (caller left, agent right), timeline.png and call.json.",
)
@click.option("--voice", metavar="NAME", help="The caller's Piper voice: a bundled name or the path of an .onnx file.")
@click.option("--token", envvar="VOICE_AGENT_API_KEY", help="Key to present; also taken from VOICE_AGENT_API_KEY.")
@click.option("--conversation", metavar="ID", help="Resume this conversation.")
@click.option("--rate", type=click.Choice([str(r) for r in RATES]), default="16000", show_default=True, help="In Hz.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 600),
    default=TIMEOUT_S,
    show_default=True,
    metavar="S",
    help="Longest wait for the greeting and for each answer.",
)
@click.option(
    "--settle",
    type=click.FloatRange(0.1, 60),
    default=SETTLE_S,
    show_default=True,
    metavar="S",
    help="Silence after which the agent is taken to have finished.",
)
@click.option("--json", "as_line", is_flag=True, help="Print one line of JSON at the end; all else goes to stderr.")
@click.pass_context
def call(ctx: click.Context, /, **options: Any) -> None:
    """Place a simulated call to a running agent.

    The caller listens to the greeting, speaks its lines in order, each after the agent has finished,
    and hangs up. Ends with 0 when it was greeted and every line was answered (and every barge-in
    silenced the agent), with 1 and a statement of what was missing otherwise, and with 2 when the call
    could not be placed.

    \b
      voice-agent call --say "What is my balance?"
      voice-agent call --say "When are you open?" --barge-in-at 1.5 --say "Stop. On Sunday?" --record out/
    """
    console = Console(stderr=options["as_line"])
    try:
        lines = _ordered(ctx.meta.get(_ORDER, []), options)
    except LineError as error:
        raise click.UsageError(str(error), ctx) from error
    try:
        ctx.exit(_place(lines, options, console))
    except RemediableError as error:
        Console(stderr=True).print(_fault(error, "bold red"), highlight=False)
        _print_json(options, {"ok": False, "status": NOT_PLACED, "missing": [str(error)]})
        ctx.exit(NOT_PLACED)


def _ordered(order: list[str], options: Mapping[str, Any]) -> tuple[Line, ...]:
    values = {name: iter(options[name]) for name in _LINE_OPTIONS}
    return order_lines((name, next(values[name])) for name in order)


def _place(lines: tuple[Line, ...], options: Mapping[str, Any], console: Console) -> int:
    from voice_agent.caller.preparation import prepare

    rate = int(options["rate"])
    destination = Destination(options["url"], rate, options["token"], options["conversation"])
    wire = make_wire(options["via"], destination)
    spoken = prepare(lines, rate, options["voice"], console)
    recording = Recording(options["record"], rate) if options["record"] else None
    session = Session(wire, spoken, rate, patience=Patience(options["settle"], options["timeout"]), recording=recording)
    account = Account(session.outcome.conversation)
    display = Display(console, session.outcome.conversation, account, signals_clear=wire.signals_clear)
    session.observe(display.observe)
    by = " by WebRTC" if options["via"] == "webrtc" else ""
    console.print(f"Calling {options['url']}{by} …", style="bold", markup=False, highlight=False)
    interrupted = _run(session, recording)
    result = {"url": options["url"], "via": options["via"], "rate": rate} | as_json(
        session.outcome, account, signals_clear=wire.signals_clear
    )
    status = INTERRUPTED if interrupted else ANSWERED if result["ok"] else UNANSWERED
    result |= {"status": status}
    _print_verdict(result, console)
    if recording is not None:
        result |= {"recording": _keep(recording, result, console)}
    _print_json(options, result)
    return status


def make_wire(via: str, destination: Destination) -> CallerWire:
    """Return the caller's end of the wire called ``via``."""
    if via == "webrtc":
        try:
            from voice_agent.caller.webrtc import WebRtcWire
        except ModuleNotFoundError as missing:
            raise RemediableError(
                f"Calls by WebRTC need {missing.name}.", "Install the extra: pip install 'voice-agent[webrtc]'"
            ) from None
        return WebRtcWire(destination)
    from voice_agent.caller.websocket import WebSocketWire

    return WebSocketWire(destination)


def _run(session: Session, recording: Recording | None) -> bool:
    """Carry the call; return whether its user interrupted it."""
    try:
        asyncio.run(session.run())
    except KeyboardInterrupt:
        return True
    finally:
        if recording is not None:
            recording.close()
    return False


def _print_verdict(result: Mapping[str, Any], console: Console) -> None:
    if result["ok"]:
        lines = len(result["turns"]) - 1
        answered = f", and {lines} of {lines} lines answered" if lines else ""
        console.print(f"Greeted{answered}.", style="bold green", highlight=False)
    for sentence in result["missing"]:
        console.print(sentence, style="bold red", markup=False, highlight=False)


def _keep(recording: Recording, result: Mapping[str, Any], console: Console) -> dict[str, str | None]:
    """Write the account and the picture beside the audio; say where they lie or why they do not."""
    from voice_agent.caller.picture import draw_timeline

    kept: dict[str, str | None] = {"audio": str(recording.audio), "account": None, "picture": None}
    steps = (("account", recording.account), ("picture", recording.picture))
    for name, path in steps:
        try:
            if name == "account":
                recording.write_account(result)
            else:
                draw_timeline(result, recording.audio, path)
            kept[name] = str(path)
        except RemediableError as error:
            console.print(f"No {name}:", _fault(error, "yellow"), highlight=False)
    if recording.problem:
        console.print(recording.problem, style="yellow", markup=False, highlight=False)
    for written in filter(None, kept.values()):
        console.print(f"  {written}", style="dim", markup=False, highlight=False, soft_wrap=True)
    return kept


def _fault(error: RemediableError, style: str) -> Text:
    # As text, not as markup: remedies name extras in brackets.
    return Text(error.message, style=style).append(f" {error.remedy}", style="not bold default")


def _print_json(options: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    if options["as_line"]:
        click.echo(json.dumps(result, ensure_ascii=False))
