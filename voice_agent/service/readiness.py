"""What still keeps a service from taking calls."""

from __future__ import annotations


class Readiness:
    """Names of the parts that are missing; empty when the service is ready."""

    def __init__(self, *parts: str) -> None:
        self._missing: dict[str, str] = dict.fromkeys(parts, "")
        self._draining = False

    @property
    def missing(self) -> tuple[str, ...]:
        if self._draining:
            return ("the service is stopping",)
        return tuple(f"{part} {detail}".strip() for part, detail in self._missing.items())

    @property
    def is_ready(self) -> bool:
        return not self._draining and not self._missing

    def progress(self, part: str, detail: str) -> None:
        """Say how far a missing part is, such as ``3 of 10``."""
        if part in self._missing:
            self._missing[part] = detail

    def have(self, part: str) -> None:
        self._missing.pop(part, None)

    def drain(self) -> None:
        self._draining = True
