"""Headless Chromium for tests of pages: Debian's, driven by Playwright. One at a time."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

EXECUTABLE = "/usr/bin/chromium"
# Without them it looks up hosts of its maker at every start, which a closed machine refuses many times over.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required",
)  # fmt: skip
_LOCK = Path(tempfile.gettempdir()) / "voice-agent-browser.lock"
_INSTALL_S = 600


def executable() -> str:
    """Return the browser, installing Debian's package where there is none.

    Raises:
        RuntimeError: It cannot be installed; the message has apt's own words.
    """
    if not Path(EXECUTABLE).exists():
        with _LOCK.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]):
                if Path(EXECUTABLE).exists():
                    break
                done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
                if done.returncode and "install" in command:
                    raise RuntimeError(f"chromium cannot be installed: {done.stderr.strip()}")
    return EXECUTABLE


@asynccontextmanager
async def browser(flags: Sequence[str] = ()) -> AsyncIterator[Any]:
    """Yields a Playwright ``Browser``. ``flags`` are further command-line flags, such as fake microphones."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=executable(), args=[*FLAGS, *flags])
        try:
            yield launched
        finally:
            await launched.close()


def axe_source() -> str | None:
    """Return axe-core, the accessibility checker, from npm; None where npm is missing."""
    cache = Path.home() / ".cache" / "voice-agent-tests" / f"axe-core-{AXE_VERSION}"
    script = cache / "package" / "axe.min.js"
    if not script.is_file():
        if shutil.which("npm") is None:
            return None
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            command = ["npm", "pack", f"axe-core@{AXE_VERSION}", "--silent", "--pack-destination", work]
            subprocess.run(command, check=True, capture_output=True, timeout=_INSTALL_S, cwd=work)
            archive = next(Path(work).glob("*.tgz"))
            subprocess.run(["tar", "-xzf", str(archive), "-C", str(cache), "package/axe.min.js"], check=True)
    return script.read_text()


AXE_VERSION = "4.14.1"
