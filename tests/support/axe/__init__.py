"""axe-core, the accessibility checker: one file from npm."""

from __future__ import annotations

from pathlib import Path

from tests.support.npm_packages import installed


def axe_script() -> Path:
    """Return the path of axe-core's script. Raises as `installed`."""
    return installed(Path(__file__).parent, "axe", "axe-core/axe.min.js")
