"""Compares what a test expects with what happened. Pure: facts in, mismatches out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voice_agent.authoring.expectation_file import (
    NONE,
    VALUE_MATCHERS,
    Expectation,
    Never,
    SkillExpectation,
    TextMatch,
    ToolRunMatch,
)
from voice_agent.diagnostics import did_you_mean

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One dispatch of a tool, as the tracker has it."""

    name: str
    arguments: Any
    result: Any
    success: bool

    def __str__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self.arguments.items()) if isinstance(self.arguments, dict) else ""
        return f"{self.name}({given})" + ("" if self.success else " failed")


@dataclass(slots=True)
class TurnFacts:
    """What one turn did.

    Attributes:
        messages: (text, response name) of each message.
        read: Returns (known, value) of a memory entry as a test names it.
        entries: Every name that ``read`` knows, for suggestions.
        active: The skill on top of the stack afterwards.
        confirming: The tool held for a yes.
    """

    messages: Sequence[tuple[str, str | None]] = ()
    runs: Sequence[ToolRun] = ()
    hung_up: bool = False
    status: str = "completed"
    heard: str = ""
    active: str | None = None
    started: Sequence[str] = ()
    completed: Sequence[str] = ()
    cancelled: Sequence[str] = ()
    confirming: str | None = None
    read: Callable[[str], tuple[bool, Any]] = lambda name: (False, None)
    entries: Sequence[str] = ()
    skills: Sequence[str] = ()
    tools: Sequence[str] = ()

    @property
    def reply(self) -> str:
        return " ".join(text for text, _ in self.messages)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One expectation that does not hold.

    Attributes:
        key: Where it stands below ``expect``, such as ``("memory", "project.name")``.
        expected, actual: For people; ``compare`` says that both are texts worth a word-by-word difference.
    """

    key: tuple[str | int, ...]
    expected: str
    actual: str
    hint: str = ""
    compare: bool = False


@dataclass(slots=True)
class _Check:
    facts: TurnFacts
    found: list[Mismatch] = field(default_factory=list)

    def fail(
        self, key: tuple[str | int, ...], expected: str, actual: str, hint: str = "", compare: bool = False
    ) -> None:
        self.found.append(Mismatch(key, expected, actual, hint, compare))


def check(expected: Expectation, facts: TurnFacts) -> list[Mismatch]:
    """Return every part of ``expected`` that does not hold."""
    todo = _Check(facts)
    _said(todo, "said", expected.said, facts.messages)
    _said(todo, "heard", expected.heard, [(facts.heard, None)])
    if expected.silent is not None and expected.silent == bool(facts.messages):
        wanted = "nothing is said" if expected.silent else "something is said"
        todo.fail(("silent",), wanted, quoted(facts.reply) if facts.messages else NOTHING)
    _ran(todo, expected.ran)
    _memory(todo, expected.memory)
    if expected.skill is not None:
        _skill(todo, expected.skill)
    if expected.confirming is not None and expected.confirming != (facts.confirming or NONE):
        todo.fail(("confirming",), expected.confirming, facts.confirming or NONE)
    if expected.hung_up is not None and expected.hung_up != facts.hung_up:
        ends = {True: "the agent hangs up", False: "the agent stays on the line"}
        todo.fail(("hung_up",), ends[expected.hung_up], ends[facts.hung_up])
    if expected.status is not None and expected.status != facts.status:
        todo.fail(("status",), expected.status, facts.status)
    todo.found += [Mismatch(("never", *m.key), m.expected, m.actual) for m in check_never(expected.never, facts)]
    return todo.found


def check_never(never: Never, facts: TurnFacts) -> list[Mismatch]:
    """Return what happened in this turn though it never should."""
    todo = _Check(facts)
    for index, match in enumerate(never.said):
        for text, response in facts.messages:
            if fits(match, text, response):
                todo.fail(("said", index), f"never said: {match.described}", quoted(text))
                break
    for index, run in enumerate(never.ran):
        ran = next((r for r in facts.runs if _run_fits(run, r)), None)
        if ran is not None:
            todo.fail(("ran", index), f"never run: {_described(run)}", str(ran))
    return todo.found


# --- texts -------------------------------------------------------------------------------------


def _said(todo: _Check, key: str, wanted: Sequence[TextMatch], messages: Sequence[tuple[str, str | None]]) -> None:
    """Each matcher must find a message at or after the one that the matcher before it found."""
    position = 0
    whole = " ".join(text for text, _ in messages)
    for index, match in enumerate(wanted):
        later = range(position, len(messages))
        hit = next((i for i in later if fits(match, *messages[i])), None)
        if hit is not None:
            position = hit
        elif not (match.response is None and fits(match, whole, None)):
            _miss(todo, (key, index), match, messages, whole)


def _miss(
    todo: _Check, key: tuple[str | int, ...], match: TextMatch, messages: Sequence[tuple[str, str | None]], whole: str
) -> None:
    if match.response is not None:
        said = ", ".join(name or quoted(text) for text, name in messages) or NOTHING
        near = did_you_mean(match.response, [name for _, name in messages if name])
        todo.fail(key, f"the response {match.response}", said, near)
        return
    expected = match.equals if match.equals is not None else match.contains
    if expected is None:
        todo.fail(key, match.described, quoted(whole) if whole else NOTHING)
        return
    todo.fail(key, match.described, quoted(whole) if whole else NOTHING, compare=bool(whole))


def fits(match: TextMatch, text: str, response: str | None) -> bool:
    """Return whether a message is as ``match`` says."""
    if match.response is not None:
        return match.response == response
    return _text_fits({name: getattr(match, name) for name in ("contains", "equals", "matches")}, text)


def _text_fits(matcher: Mapping[str, Any], text: str) -> bool:
    if matcher.get("contains") is not None:
        return _flat(str(matcher["contains"])).casefold() in _flat(text).casefold()
    if matcher.get("equals") is not None:
        return _flat(str(matcher["equals"])) == _flat(text)
    return re.search(str(matcher["matches"]), text) is not None


def _flat(text: str) -> str:
    """Even out white space and the typographic forms of quotes, which nobody hears."""
    return " ".join(text.translate(_TYPOGRAPHY).split())


_TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})


def quoted(text: str) -> str:
    return f"“{text}”"


# --- tools -------------------------------------------------------------------------------------


def _ran(todo: _Check, wanted: Sequence[ToolRunMatch]) -> None:
    for index, run in enumerate(wanted):
        fitting = [r for r in todo.facts.runs if _run_fits(run, r)]
        if len(fitting) == run.times or (run.times is None and fitting):
            continue
        ran = [str(r) for r in todo.facts.runs]
        times = "" if run.times is None else f", {run.times} times"
        actual = ", ".join(ran) or "no tool ran"
        if run.times is not None and fitting:
            actual = f"{len(fitting)} times: {actual}"
        near = "" if run.tool in todo.facts.tools else did_you_mean(run.tool, todo.facts.tools)
        todo.fail(("ran", index), f"{_described(run)} ran{times}", actual, near)


def _run_fits(wanted: ToolRunMatch, ran: ToolRun) -> bool:
    if wanted.tool != ran.name or (wanted.failed is not None and wanted.failed == ran.success):
        return False
    return same(wanted.arguments, ran.arguments) and (wanted.result is None or same(wanted.result, ran.result))


def _described(run: ToolRunMatch) -> str:
    return str(ToolRun(run.tool, run.arguments, None, not run.failed))


# --- values ------------------------------------------------------------------------------------


def same(expected: Any, actual: Any) -> bool:
    """Compare values the way a reader of YAML would.

    A mapping needs only the keys that are named; a number equals the text that writes it; a mapping
    of matchers is applied instead of compared.
    """
    if isinstance(expected, Mapping):
        if expected and set(expected) <= set(VALUE_MATCHERS):
            return _value_fits(expected, actual)
        return isinstance(actual, Mapping) and all(k in actual and same(v, actual[k]) for k, v in expected.items())
    if isinstance(expected, list):
        fits_all = isinstance(actual, list | tuple) and len(expected) == len(actual)
        return fits_all and all(same(e, a) for e, a in zip(expected, actual, strict=True))
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or actual is None:
        return expected is actual
    return bool(expected == actual) or (not isinstance(actual, Mapping | list) and str(expected) == str(actual))


def _value_fits(matcher: Mapping[str, Any], actual: Any) -> bool:
    if "set" in matcher and bool(matcher["set"]) != (actual is not None):
        return False
    if "one_of" in matcher and not any(same(value, actual) for value in matcher["one_of"]):
        return False
    texts = {k: v for k, v in matcher.items() if k in ("contains", "equals", "matches")}
    return not texts or (actual is not None and all(_text_fits({k: v}, str(actual)) for k, v in texts.items()))


def _memory(todo: _Check, wanted: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        known, actual = todo.facts.read(name)
        if not known:
            near = did_you_mean(name, todo.facts.entries)
            todo.fail(("memory", name), f"memory has {name}", "there is no such field", near)
        elif not same(value, actual):
            todo.fail(("memory", name), f"{name} = {written(value)}", written(actual))


def written(value: Any) -> str:
    """Return a value as a test file would write it."""
    return "unset" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _skill(todo: _Check, wanted: SkillExpectation) -> None:
    facts = todo.facts
    if wanted.active is not None and wanted.active != (facts.active or NONE):
        todo.fail(
            ("skill", "active"), f"active skill {wanted.active}", facts.active or NONE, _near(todo, wanted.active)
        )
    for key in ("started", "completed", "cancelled"):
        happened: Iterable[str] = getattr(facts, key)
        for name in getattr(wanted, key):
            if name not in happened:
                actual = ", ".join(happened) or NOTHING
                todo.fail(("skill", key), f"{key}: {name}", f"{key}: {actual}", _near(todo, name))


def _near(todo: _Check, skill: str) -> str:
    return "" if skill in (*todo.facts.skills, NONE) else did_you_mean(skill, todo.facts.skills)
