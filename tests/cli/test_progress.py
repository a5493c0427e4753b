from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from voice_agent.cli.progress import progress_bars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_is_drawn_and_gone_once_everything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    before = threading.active_count()
    with progress_bars(quiet=False) as progress:
        progress("speech to text", 1, 1)
        assert terminal.getvalue() == ""
        for done in range(1, 4):
            progress("spoken responses", done, 3)
        assert "spoken responses" in terminal.getvalue()
        give_up = time.monotonic() + 5
        while threading.active_count() > before:
            assert time.monotonic() < give_up, "nothing may go on drawing while the service runs"
            time.sleep(0.01)


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_is_drawn_where_nobody_watches(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    stream = Terminal() if quiet else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bars(quiet=quiet) as progress:
        progress("spoken responses", 1, 3)
    assert stream.getvalue() == ""
