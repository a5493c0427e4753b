"""What a tool run came to."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool run came to.

    Attributes:
        json: The result, or the error, as the model should read it.
        read: Memory references that the tool has read beside its arguments.
        unreachable: It failed because what it works with cannot be reached at present.
    """

    success: bool
    json: str
    read: frozenset[str] = frozenset()
    unreachable: bool = False

    @property
    def achieved(self) -> bool:
        """It ran and did what it is for: an expected failure is data with ``ok`` false."""
        result = json.loads(self.json) if self.success else None
        return self.success and not (isinstance(result, dict) and result.get("ok") is False)
