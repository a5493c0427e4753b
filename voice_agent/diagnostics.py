"""Problems found in a project's files: where, what, and what would be right.

Every loader collects problems and reports them together, so an author fixes a file once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Severity(Enum):
    """An error keeps a project from loading, a warning does not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    """Nothing is wrong; worth knowing."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in a project file.

    Attributes:
        id: Stable identifier such as ``skill.markdown.invalid_frontmatter_delimiter``.
        message: What is wrong, in one sentence.
        remedy: What would be right.
        path: The file, or ``None`` where no file is to blame.
        line: 1-based line in ``path``, or ``None``.
    """

    id: str
    message: str
    remedy: str = ""
    path: Path | None = None
    line: int | None = None
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        where = "" if self.path is None else f"{self.path}:{self.line}: " if self.line else f"{self.path}: "
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{where}{self.severity.value}: {self.message}{remedy} [{self.id}]"


class ProjectError(Exception):
    """A project cannot be loaded. Carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class RemediableError(Exception):
    """A fault the operator can mend: what failed, and the remedy, in two sentences."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message, self.remedy = message, remedy
        super().__init__(f"{message} {remedy}")


def missing_package(package: str, extra: str) -> RemediableError:
    """Return the error for a package that comes with an extra of ``voice-agent`` and is not installed."""
    return RemediableError(
        f"The package {package} is not installed.", f'Install it: pip install "voice-agent[{extra}]".'
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"Did you mean 'x'?"`` for the nearest known word, or an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else ""
