"""The package as the image installs it: built from exactly the files that are copied, in an environment of its own."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.packaging.test_container import ROOT, copied


def run(*command: str | Path, cwd: Path) -> str:
    # A source tree named there would be found before what is installed.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the Dockerfile copies, and no others."""
    directory = tmp_path_factory.mktemp("source")
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, directory / name)
    return directory


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", directory, source, cwd=directory)
    (built,) = directory.glob("voice_agent-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare environment with the wheel; its dependencies are seen in the environment of the tests."""
    directory = tmp_path_factory.mktemp("venv")
    venv.create(directory, with_pip=False, symlinks=True)
    purelib = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory), "platbase": str(directory)}))
    install = ("-m", "pip", "--python", directory / "bin" / "python", "install", "--quiet", "--no-deps", "--no-index")
    run(sys.executable, *install, wheel, cwd=directory)
    (purelib / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return directory / "bin"


def test_every_file_of_the_package_that_is_no_code_is_in_the_wheel(wheel, source):
    package = source / "voice_agent"
    data = {p.relative_to(source).as_posix() for p in package.rglob("*") if p.is_file() and p.suffix != ".py"}
    held = set(zipfile.ZipFile(wheel).namelist())
    assert data - held == set()
    assert any(name.endswith(".md") for name in data) and any(name.endswith(".wav") for name in data)


def test_nothing_but_the_package_is_in_the_wheel(wheel):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"voice_agent"}


def test_the_installed_command_runs_away_from_the_source(installed, tmp_path):
    where = run(installed / "python", "-c", "import voice_agent; print(voice_agent.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    help_text = run(installed / "voice-agent", "--help", cwd=tmp_path)
    assert all(command in help_text for command in ("run", "chat", "call", "check"))
    assert "--barge-in-at" in run(installed / "voice-agent", "call", "--help", cwd=tmp_path)


def test_the_installed_command_finds_no_fault_in_the_example_agent(installed, source):
    run(installed / "voice-agent", "check", cwd=source)
