"""Things that count once within a while: nonces, ids of events. Pure."""

from __future__ import annotations

from collections import OrderedDict

MAX_KEPT = 20_000
"""Names kept at once. When there are more, nothing is new until the oldest have passed."""


class Once:
    """Tells whether a name comes for the first time within ``window_s``."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._seen: OrderedDict[str, float] = OrderedDict()

    def first(self, name: str, now_s: float) -> bool:
        """Whether ``name`` is new; it no longer is after that. False as well while too many are kept."""
        while self._seen and next(iter(self._seen.values())) < now_s - self._window_s:
            self._seen.popitem(last=False)
        if name in self._seen or len(self._seen) >= MAX_KEPT:
            return False
        self._seen[name] = now_s
        return True
