"""Wait until the service says that it takes calls, and show what it is waiting for.

    python scripts/demo/wait_ready.py http://127.0.0.1:8080/readyz --pid 1234

Ends with 0 when ready, with 1 when the process has ended or the time is up.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

TIMEOUT_S = 120.0
POLL_S = 0.2
STARTING = "starting"


def missing(url: str) -> str | None:
    """Return what the service still lacks, in a few words; None when it is ready."""
    # Without proxies: the service is on this machine.
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=2):
            return None
    except HTTPError as error:
        try:
            return ", ".join(json.load(error)["missing"])
        except (ValueError, KeyError, TypeError):
            return f"status {error.code}"
    except (URLError, TimeoutError, ConnectionError):
        return STARTING


def alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    if not stat.parent.parent.joinpath("self").exists():
        return True  # no /proc here: the time limit decides
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def same_but_for_counts(line: str, other: str) -> bool:
    return re.sub(r"\d+", "", line) == re.sub(r"\d+", "", other)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--pid", type=int, required=True)
    arguments = parser.parse_args()
    began, shown = time.monotonic(), ""
    show = "\r\033[K{}" if sys.stdout.isatty() else "{}\n"
    while (waited := time.monotonic() - began) < TIMEOUT_S:
        if not alive(arguments.pid):
            sys.stdout.write(show.format("The service has ended.\n"))
            return 1
        lacking = missing(arguments.url)
        if lacking is None:
            sys.stdout.write(show.format(f"The service is ready after {waited:.1f} s.").rstrip("\n") + "\n")
            return 0
        line = "Starting the service …" + (f" still to come: {lacking}" if lacking != STARTING else "")
        if sys.stdout.isatty():
            sys.stdout.write(show.format(f"{line} ({waited:.0f} s)"))
        elif not same_but_for_counts(line, shown):
            sys.stdout.write(show.format(line))
        sys.stdout.flush()
        shown = line
        time.sleep(POLL_S)
    sys.stdout.write(show.format(f"The service is not ready after {TIMEOUT_S:.0f} s.\n"))
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
