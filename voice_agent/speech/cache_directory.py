"""Where speech keeps what can be made again: joined weights, spoken lines."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return ``$XDG_CACHE_HOME/voice-agent``, or ``~/.cache/voice-agent``. It need not exist yet."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rule: a relative path is to be ignored.
    root = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return root / "voice-agent"
