"""Results of conversation tests for machines: JSON and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from voice_agent.authoring.player import Failure, Outcome, Status


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the results as JSON-ready data."""
    return {
        **{status.value: sum(o.status is status for o in outcomes) for status in Status},
        "tests": [
            {
                "name": outcome.test.test.name,
                "file": str(outcome.test.path),
                "line": outcome.test.line,
                "tags": outcome.test.test.tags,
                "status": outcome.status.value,
                "seconds": round(outcome.seconds, 3),
                "reason": outcome.reason,
                "failures": [asdict(failure) for failure in outcome.failures],
                "transcript": [asdict(line) for line in outcome.transcript],
            }
            for outcome in outcomes
        ],
    }


def as_junit(outcomes: Sequence[Outcome]) -> bytes:
    """Return the results as a JUnit XML document, one suite per file."""
    top = ElementTree.Element("testsuites", name="voice-agent")
    suites: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        suites.setdefault(str(outcome.test.path), []).append(outcome)
    for file, found in suites.items():
        suite = ElementTree.SubElement(
            top,
            "testsuite",
            name=file,
            tests=str(len(found)),
            failures=str(sum(o.status is Status.FAILED for o in found)),
            skipped=str(sum(o.status is Status.SKIPPED for o in found)),
            time=f"{sum(o.seconds for o in found):.3f}",
        )
        for outcome in found:
            _case(suite, outcome, file)
    ElementTree.indent(top)
    document: bytes = ElementTree.tostring(top, encoding="utf-8", xml_declaration=True)
    return document


def _case(suite: ElementTree.Element, outcome: Outcome, file: str) -> None:
    name, line = outcome.test.test.name, str(outcome.test.line)
    case = ElementTree.SubElement(
        suite, "testcase", name=name, classname=outcome.test.path.stem, file=file, line=line,
        time=f"{outcome.seconds:.3f}",
    )  # fmt: skip
    if outcome.status is Status.SKIPPED:
        ElementTree.SubElement(case, "skipped", message=outcome.reason)
    for failure in outcome.failures:
        element = ElementTree.SubElement(case, "failure", message=_clean(one_line(failure)))
        said = [f"{line.kind}: {line.text}" for line in outcome.transcript]
        element.text = _clean("\n".join([f"{file}:{failure.line}", *said]))


def one_line(failure: Failure) -> str:
    """Return a failure in one line."""
    parts = [failure.what]
    if failure.expected:
        parts.append(f"expected {failure.expected}, got {failure.actual}.")
    elif failure.actual:
        parts.append(failure.actual)
    return " ".join([*parts, failure.hint]).strip()


def _clean(text: str) -> str:
    """Drop what XML 1.0 has no form for."""
    return "".join(c for c in text if c in "\t\n\r" or ord(c) >= 32)
