"""The format of an interaction script: who does what when, and what must come of it. Drawn in README.md."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from voice_agent.transfers import TransferReason


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tool(_Strict):
    """A tool with an effect at its end."""

    name: str
    seconds: float
    interruptible: bool = True


class Step(_Strict):
    """One thing a turn does. Exactly one of the fields is set."""

    say: str | None = None
    """A canned message."""
    protected: str | None = None
    """A canned message that must be heard whole."""
    discarding: str | None = None
    """One over which the caller is not listened to."""
    recorded: str | None = None
    """A canned message that is to be known of even if it was cut."""
    stream: str | None = None
    """A message of the model, word by word."""
    wait: float | None = None
    tool: Tool | None = None
    hang_up: str | None = None
    transfer: str | None = None
    """Put the caller through; what comes after it is for when that fails."""
    fail: str | None = None
    """The dialogue breaks with this message."""

    @model_validator(mode="after")
    def _one(self) -> Step:
        if len(self.model_fields_set) != 1:
            raise ValueError("a step does exactly one thing")
        return self


def _steps(value: Any) -> Any:
    return [{"say": value}] if isinstance(value, str) else value


AgentTurn = Annotated[tuple[Step, ...], BeforeValidator(_steps)]


class Act(_Strict):
    """One thing the caller does. One cue says when, one field says what.

    Cues: ``at`` seconds of the call; ``after`` so long after the caller's previous act ended; ``over`` an agent's word
    (as it begins to sound, ``delay`` later); ``when`` an entry of the story was made, ``delay`` later. Acts are taken
    in order: a cue is looked for once the act before it has begun.
    """

    at: float | None = None
    after: float | None = None
    over: str | None = None
    when: str | None = None
    delay: float = 0.0

    says: str | None = None
    noise: float | None = None
    """Voice without words, in seconds."""
    sound: float | None = None
    """Sound that the detector does not take for voice, but for a single frame now and then."""
    keys: str | None = None
    types: str | None = None
    mutes: bool | None = None
    """The caller switches the microphone off (true) or on."""
    leaves: Literal["hang_up", "disconnected"] | None = None
    ends: Literal["shutdown", "leave"] | None = None
    """The service ends the call: at once, or taking leave within six seconds."""
    takes: float | None = None
    """Length of what is said (0.3 s a word), or seconds between keys (0.2)."""

    @model_validator(mode="after")
    def _one_cue_one_act(self) -> Act:
        cues = {"at", "after", "over", "when"} & self.model_fields_set
        acts = {"says", "noise", "sound", "keys", "types", "mutes", "leaves", "ends"} & self.model_fields_set
        if len(cues) != 1 or len(acts) != 1:
            raise ValueError(f"an act has one cue and does one thing, not {sorted(cues)} and {sorted(acts)}")
        return self


class Line(_Strict):
    """What the caller came in by."""

    seconds: float = 20.0
    """The caller hangs up then, if the call still lasts."""
    reports_position: bool = False
    sends_silence: bool = True
    media_until: float | None = None
    drain_s: float = 0.0
    """How late the far end plays what it was sent."""
    stuck: bool = False
    """Neither drains nor hangs up by itself."""
    resumed: bool = False
    transfers: tuple[tuple[float, TransferReason], ...] | None = None
    """How long each transfer rings, and what comes of it; the last one repeats."""


class VoiceScript(_Strict):
    first_byte_s: float = 0.0
    piece_s: float = 0.0
    cached: bool = False
    cold: bool = False
    """Not even fillers are in the cache."""
    fail_pieces: tuple[int, ...] = ()
    silent_pieces: tuple[int, ...] = ()
    """Pieces that never come."""
    ignore_cancel: bool = False


class EarsScript(_Strict):
    seconds: float = 0.2
    requests: tuple[float | Literal["error", "rejected"] | None, ...] = ()
    """What becomes of each request in order: null is as usual, a number is how long it takes."""
    hears: dict[str, str] = {}
    """What is understood instead of what was said."""


class HangUps(_Strict):
    """The script is played once for each instant, with a hang-up there."""

    count: int
    seed: int
    until: float


class Expected(_Strict):
    audible: tuple[str, ...]
    story: tuple[dict[str, str], ...]
    client: tuple[dict[str, str], ...] | None = None
    outcome: str
    clears: int | None = None
    answer_within_s: float | None = None
    stop_within_s: float | None = None
    seconds: tuple[float, float] | None = None
    never_asked: bool = False
    """The recogniser was not asked at all."""


class Script(_Strict):
    about: str
    line: Line = Line()
    options: dict[str, Any] = {}
    voice: VoiceScript = VoiceScript()
    ears: EarsScript = EarsScript()
    lines: dict[str, str] = {}
    agent: tuple[AgentTurn, ...]
    silence: tuple[AgentTurn, ...] = ()
    """Turns for ``/silence``, in order; the last one repeats."""
    caller: tuple[Act, ...] = ()
    hangs_up_at_random: HangUps | None = None
    expect: Expected


@cache
def load(path: Path) -> Script:
    """Read one script.

    Raises:
        ValueError: With the file's name, if it is not of the format.
    """
    try:
        return Script.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path.name}: {error}") from None
