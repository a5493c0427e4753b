"""What holds for every test.

No test writes into the data directory of whoever runs it, and none finds another's conversations. Examples of
property tests have no deadline: how long one takes says something about the machine, not about the code. Commands
that run inside a test set up the process's log, which is set back after it. Reports can be sent between processes,
whatever a test has logged.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.llama_server import LlamaServer
from tests.support.llama_server import llama_server as start_llama_server

settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")


@pytest.fixture(scope="session", autouse=True)
def _data_directory_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For what is started once for many tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def llama_server() -> Iterator[LlamaServer]:
    """A real, small model behind an OpenAI-compatible server: one for all tests that want it."""
    with start_llama_server() as server:
        yield server


@pytest.fixture(autouse=True)
def data_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own data directory."""
    path = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("XDG_DATA_HOME", str(path))
    return path


@pytest.fixture(scope="module", autouse=True)
def _collector_spared() -> None:
    """What earlier tests have loaded need not be looked through: tests that look for leaks collect after every call."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _log_set_back() -> Iterator[None]:
    root, project = logging.getLogger(), logging.getLogger("voice_agent")
    levels = root.level, project.level
    yield
    for handler in [h for h in root.handlers if getattr(h, "_voice_agent", False)]:
        root.removeHandler(handler)
    root.setLevel(levels[0])
    project.setLevel(levels[1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report
