"""Which store a project gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_service import write_project
from voice_agent.config_files import load_config
from voice_agent.diagnostics import ProjectError
from voice_agent.store import ConversationStore, MemoryStore, SqliteStore
from voice_agent.store.opening import configured_store, data_directory


def store_of(root: Path, settings: str = "", agent: str = "agent: {id: line, persona: You answer.}\n") -> SqliteStore:
    store = configured_store(load_config(write_project(root, settings, {"agent.yml": agent})))
    assert isinstance(store, SqliteStore)
    return store


def test_by_default_it_is_a_file_in_the_users_data_directory_named_after_the_agent(
    tmp_path: Path, data_directory: Path
) -> None:
    assert store_of(tmp_path).path == data_directory / "voice-agent" / "line.sqlite3"
    assert list(data_directory.iterdir()) == [], "nothing is made before it is opened"


def test_agents_without_an_id_have_a_file_each(tmp_path: Path) -> None:
    paths = {
        store_of(tmp_path / parent / "agent", agent="agent: {persona: You answer.}\n").path for parent in ("a", "b")
    }
    assert len(paths) == 2
    assert all(path.name.startswith("agent-") for path in paths)


def test_an_id_is_never_a_path(tmp_path: Path, data_directory: Path) -> None:
    store = store_of(tmp_path, agent="agent: {id: '../../etc/passwd', persona: You answer.}\n")
    assert store.path.parent == data_directory / "voice-agent"


def test_a_path_is_taken_from_the_project_on(tmp_path: Path) -> None:
    assert store_of(tmp_path, "store: {path: kept/calls.sqlite3}\n").path == tmp_path / "kept" / "calls.sqlite3"
    assert store_of(tmp_path, "store: {path: /var/x.sqlite3}\n").path == Path("/var/x.sqlite3")


def test_memory_may_be_asked_for(tmp_path: Path) -> None:
    root = write_project(tmp_path, "store: {path: ':memory:'}\n")
    store: ConversationStore = configured_store(load_config(root))
    assert isinstance(store, MemoryStore)


def test_a_relative_data_directory_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "here")
    assert data_directory() == Path.home() / ".local" / "share" / "voice-agent"


@pytest.mark.parametrize("settings", ["store: {retention_days: -1}\n", "store: {max_events: 5}\n", "store: {pth: x}\n"])
def test_settings_that_make_no_sense_are_errors(tmp_path: Path, settings: str) -> None:
    with pytest.raises(ProjectError, match="store"):
        load_config(write_project(tmp_path, settings))
