"""MCP servers from npm, pinned with their digests in ``package-lock.json``.

Installed into the tests' cache on first need; nothing is written into the project.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.debian import cache_directory, program

HERE = Path(__file__).parent
_TIMEOUT_S = 300


def server_script(name: str) -> Path:
    """Return the script of the server ``@modelcontextprotocol/server-<name>``, for Node.js.

    Raises:
        RuntimeError: It cannot be installed; the message has npm's own words.
    """
    lock = (HERE / "package-lock.json").read_bytes()
    directory = cache_directory() / "mcp-servers"
    script = directory / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    kept = directory / "package-lock.json"
    if script.is_file() and kept.is_file() and kept.read_bytes() == lock:
        return script
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", directory)
    shutil.copy(HERE / "package-lock.json", directory)
    command = [str(program("npm", "npm")), "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        kept.unlink()
        raise RuntimeError(f"npm ci failed: {done.stderr.strip()}")
    return script
