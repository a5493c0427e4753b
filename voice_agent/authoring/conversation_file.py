"""What may stand in a conversation test file. Read from YAML by `conversation_reader`.

Short spellings (a text for a matcher, a name for a tool run) are turned into the long ones before
they are validated, so everything behind this module sees one form.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from voice_agent.authoring.expectation_file import Also, Expectation, Names, Never, Part, listed

INPUTS = ("say", "dtmf", "intent", "wait", "connect", "disconnect", "hang_up")
SPOKEN = ("say", "dtmf", "intent", "connect")
MAX_STEPS = 500


class ScriptedReply(Part):
    """One answer of the scripted model: text and tool calls in order, or a failure."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = Field([])
    error: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"text": value}
        parts = value if isinstance(value, list) else [value]
        text: list[str] = []
        calls: list[tuple[str, dict[str, Any]]] = []
        for part in parts:
            if isinstance(part, str):
                text.append(part)
                continue
            if not isinstance(part, dict):
                raise ValueError("a reply is a text, or a mapping of a tool to its arguments")  # noqa: TRY004
            if set(part) == {"error"}:
                return {"error": str(part["error"])}
            for name, arguments in part.items():
                if name == "say":
                    text.append(str(arguments))
                elif arguments is None or isinstance(arguments, dict):
                    calls.append((name, arguments or {}))
                else:
                    raise ValueError(f"the arguments of {name!r} must be a mapping")
        return {"text": " ".join(text), "calls": calls}


_REPLY_PART = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"say": {"type": "string"}, "error": {"type": "string"}},
            "additionalProperties": {"type": ["object", "null"]},
        },
    ]
}
Script = Annotated[
    list[ScriptedReply] | None,
    WithJsonSchema({"type": "array", "items": {"anyOf": [_REPLY_PART, {"type": "array", "items": _REPLY_PART}]}}),
]


class Stub(Part):
    """What happens instead of running a tool."""

    result: Any = None
    error: str | None = None
    takes_s: float = Field(0, ge=0, le=600)
    sets: dict[str, Any] = Field({})


Stubs = dict[str, Annotated[list[Stub], Field(min_length=1), BeforeValidator(listed), Also()]]


class Interruption(Part):
    """When the caller barges in."""

    during: str | None = None
    """A tool."""
    after_s: float = Field(0, ge=0, le=600)
    """Seconds into it."""
    after_words: int | None = Field(None, ge=0, le=10_000)
    """Words of the reply that were heard."""

    @model_validator(mode="after")
    def _one(self) -> Interruption:
        if (self.during is None) == (self.after_words is None):
            raise ValueError("needs either `during` (a tool) or `after_words`")
        return self


_UNITS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "day": 86_400}


def _duration(value: Any) -> Any:
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?", value.strip().lower())
        if found is None or found.group(2) not in _UNITS:
            raise ValueError("write a number and s, min, h or days, such as 90 min")
        return timedelta(seconds=float(found.group(1)) * _UNITS[found.group(2)])
    return value


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("write a date and time such as 2030-05-06 09:30") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return value


Duration = Annotated[timedelta | None, BeforeValidator(_duration), WithJsonSchema({"type": ["string", "number"]})]
Moment = Annotated[datetime | None, BeforeValidator(_moment), WithJsonSchema({"type": "string"})]
Keys = Annotated[str | None, BeforeValidator(lambda v: str(v) if isinstance(v, int) else v),
                 Field(pattern=r"^[0-9A-D*#]{1,64}$")]  # fmt: skip


class TestStep(Part):
    """One thing the caller does, or an expectation on its own."""

    __test__ = False

    say: str | None = None
    dtmf: Keys = None
    intent: Literal["/silence", "/session_start"] | None = None
    wait: Duration = None
    connect: Literal[True] | None = None
    disconnect: Literal[True] | None = None
    hang_up: Literal[True] | None = None
    model: Script = None
    interrupt: Interruption | None = None
    stubs: Stubs = Field({})
    expect: Expectation | None = None

    @model_validator(mode="after")
    def _one(self) -> TestStep:
        inputs = [name for name in INPUTS if getattr(self, name) is not None]
        if len(inputs) > 1:
            raise ValueError(f"does {' and '.join(inputs)} at once; make each a step of its own")
        if not inputs and self.expect is None:
            raise ValueError(f"does nothing; it needs one of {', '.join(INPUTS)}, or expect")
        if (not inputs or inputs[0] not in SPOKEN) and (self.model or self.interrupt):
            raise ValueError("`model` and `interrupt` belong to a step in which the caller speaks")
        return self

    @property
    def input(self) -> str | None:
        """The key that says what the caller does; None for an expectation on its own."""
        return next((name for name in INPUTS if getattr(self, name) is not None), None)


Mode = Literal["scripted", "live"]


class ConversationTest(Part):
    """One conversation and what is expected of it."""

    name: str = Field(min_length=1, max_length=200)
    description: str = ""
    tags: Names = Field([])
    steps: list[TestStep] = Field(min_length=1, max_length=MAX_STEPS)
    model: Mode | None = None
    connect: bool = True
    channel: str | None = None
    metadata: dict[str, Any] = Field({})
    now: Moment = None
    stubs: Stubs = Field({})
    never: Never = Never()
    timeout_s: float = Field(60, gt=0, le=3600)
    skip: str = ""

    @model_validator(mode="after")
    def _scripts_are_played(self) -> ConversationTest:
        if self.model == "live" and any(step.model for step in self.steps):
            raise ValueError("has `model: live` and scripted replies; keep one of them")
        return self


class ConversationFile(Part):
    """A file of conversation tests."""

    conversations: list[ConversationTest] = Field(min_length=1)
    model: Mode | None = None
    channel: str = "websocket"
    now: Moment = None
    stubs: Stubs = Field({})
