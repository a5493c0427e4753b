"""What a conversation test may expect of a turn, as its file says it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

TEXT_MATCHERS = ("contains", "equals", "matches", "response")
VALUE_MATCHERS = ("contains", "equals", "matches", "one_of", "set")
NONE = "none"
"""Stands for "no skill" and "no tool"."""


class Part(BaseModel):
    """Base of all parts of a file: frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def listed(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


def _regex(pattern: str | None) -> str | None:
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as fault:
            raise ValueError(f"no regular expression: {fault}") from None
    return pattern


class TextMatch(Part):
    """What a text must be like. Exactly one matcher."""

    contains: str | None = None
    equals: str | None = None
    matches: str | None = None
    response: str | None = None

    _compiles = field_validator("matches")(_regex)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"contains": str(value)} if isinstance(value, str | int | float) else value

    @model_validator(mode="after")
    def _one(self) -> TextMatch:
        if sum(getattr(self, name) is not None for name in TEXT_MATCHERS) != 1:
            raise ValueError(f"needs exactly one of {', '.join(TEXT_MATCHERS)}")
        return self

    @property
    def described(self) -> str:
        name = next(name for name in TEXT_MATCHERS if getattr(self, name) is not None)
        verb = {"response": "the response", "equals": "exactly", "matches": "a match of", "contains": ""}[name]
        return f"{verb} {getattr(self, name)!r}".strip()


class ToolRunMatch(Part):
    """A tool run: its name, and as much of arguments and result as matters."""

    tool: str
    arguments: dict[str, Any] = {}
    result: Any = None
    failed: bool | None = None
    times: int | None = Field(None, ge=0, le=1000)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"tool": value}
        if isinstance(value, dict) and "tool" not in value and len(value) == 1:
            ((name, arguments),) = value.items()
            return {"tool": name, "arguments": {} if arguments is None else arguments}
        return value


def _runs(value: Any) -> Any:
    """Let a mapping of several tools stand for a list of one each."""
    if isinstance(value, dict) and "tool" not in value:
        return [{name: arguments} for name, arguments in value.items()]
    return listed(value)


class Also:
    """Adds short spellings to the JSON schema of a part, or of the items of a list of which one may stand alone."""

    def __init__(self, *short: dict[str, Any]) -> None:
        self._short = short

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        inner = handler(schema)
        if inner.get("type") != "array":
            return {"anyOf": [inner, *self._short]}
        one = {"anyOf": [inner["items"], *self._short]} if self._short else inner["items"]
        return {"anyOf": [one, {"type": "array", "items": one}]}


_TEXT = {"type": ["string", "number"]}
_CALLS = {"type": "object", "additionalProperties": {"type": ["object", "null"]}}

TextMatches = Annotated[list[TextMatch], BeforeValidator(listed), Also(_TEXT)]
ToolRunMatches = Annotated[list[ToolRunMatch], BeforeValidator(_runs), Also({"type": "string"}, _CALLS)]
Names = Annotated[list[str], BeforeValidator(listed), Also()]


class SkillExpectation(Part):
    active: str | None = None
    """The skill on top of the stack; ``none`` when none is open."""
    started: Names = []
    completed: Names = []
    cancelled: Names = []

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"active": value} if isinstance(value, str) else value


class Never(Part):
    """What must not happen."""

    said: TextMatches = []
    ran: ToolRunMatches = []


class Expectation(Part):
    """What the last turn must have been like."""

    said: TextMatches = []
    silent: bool | None = None
    ran: ToolRunMatches = []
    memory: dict[str, Any] = {}
    skill: Annotated[SkillExpectation | None, Also({"type": "string"})] = None
    confirming: str | None = None
    hung_up: bool | None = None
    status: Literal["completed", "cancelled", "error"] | None = None
    heard: TextMatches = []
    never: Never = Never()
