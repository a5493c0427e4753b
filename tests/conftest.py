"""What holds for every test.

No test writes into the data directory of whoever runs it, and none finds another's conversations. Examples of
property tests have no deadline: how long one takes says something about the machine, not about the code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")


@pytest.fixture(scope="session", autouse=True)
def _data_directory_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For what is started once for many tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(autouse=True)
def data_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own data directory."""
    path = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("XDG_DATA_HOME", str(path))
    return path
