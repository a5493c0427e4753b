"""Packages from npm, pinned with their digests in a ``package-lock.json``.

Installed into the tests' cache on first need; nothing is written into the project.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.debian import cache_directory, program

_TIMEOUT_S = 300


def installed(pinned: Path, name: str, file: str, *options: str) -> Path:
    """Return the path of ``file`` of the packages that ``pinned`` names.

    Args:
        pinned: Directory with ``package.json`` and ``package-lock.json``.
        name: Of their place in the cache.
        file: Path below ``node_modules``.
        options: More of them for ``npm ci``.

    Raises:
        RuntimeError: They cannot be installed; the message has npm's own words.
    """
    lock = (pinned / "package-lock.json").read_bytes()
    directory = cache_directory() / name
    script, kept = directory / "node_modules" / file, directory / "package-lock.json"
    if script.is_file() and kept.is_file() and kept.read_bytes() == lock:
        return script
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(pinned / "package.json", directory)
    shutil.copy(pinned / "package-lock.json", directory)
    command = [str(program("npm", "npm")), "ci", "--ignore-scripts", *options, "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        kept.unlink()
        raise RuntimeError(f"npm ci failed: {done.stderr.strip()}")
    return script
