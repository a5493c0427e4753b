"""What tests need of Debian: human speech and music out of packages that need not be installed, and programs.

A package is fetched with ``apt-get download`` on first need and unpacked into a cache directory
(``VOICE_AGENT_TEST_CACHE``, default ``~/.cache/voice-agent-tests``). Nothing is written outside it,
except that ``apt-get update`` runs once when the package lists are empty or stale, and that programs which tests start
(`program`) are installed.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROMPTS = "asterisk-core-sounds-en-wav"
"""Studio prompts of one speaker, 8 kHz. Transcripts: see `prompt_texts`."""
LIBRIVOX = "pocketsphinx-testdata"
"""LibriVox clips and card phrases, 16 kHz."""
HOLD_MUSIC = "asterisk-moh-opsound-wav"
"""Hold music, 8 kHz."""

_PROMPT_TEXTS = "asterisk-core-sounds-en"
_TIMEOUT_S = 300
_TEXT_LINE = re.compile(r"^\s*([\w./-]+)\s*:\s*(\S.*?)\s*$")


def cache_directory() -> Path:
    """Return the directory that unpacked packages are kept in, creating it."""
    configured = os.environ.get("VOICE_AGENT_TEST_CACHE")
    directory = Path(configured) if configured else Path.home() / ".cache" / "voice-agent-tests"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def package_directory(package: str) -> Path:
    """Return the root of the unpacked package, fetching it when it is not in the cache.

    Safe to call from several processes at once.

    Raises:
        RuntimeError: The package cannot be fetched; the message has apt's own words.
    """
    cache = cache_directory()
    unpacked = cache / package
    if unpacked.is_dir():
        return unpacked
    with _locked(cache / ".lock"), tempfile.TemporaryDirectory(dir=cache) as work:
        if unpacked.is_dir():
            return unpacked
        archive = _download(package, Path(work))
        _run(["dpkg-deb", "-x", str(archive), str(Path(work) / "root")])
        # The rename is atomic, so that a half-unpacked package is never found.
        shutil.move(Path(work) / "root", unpacked)
    return unpacked


def package_file(package: str, pattern: str) -> list[Path]:
    """Return the files of a package that match a glob such as ``**/*.wav``, sorted by path.

    Raises:
        RuntimeError: The package cannot be fetched.
        FileNotFoundError: Nothing in it matches, so that a test never runs on no data.
    """
    root = package_directory(package)
    found = sorted(path for path in root.glob(pattern) if path.is_file())
    if not found:
        raise FileNotFoundError(f"no file in Debian package {package} matches {pattern!r}")
    return found


def program(package: str, name: str) -> Path:
    """Return the path of a program, installing its package with what it depends on when it is not there.

    Safe to call from several processes at once.

    Raises:
        RuntimeError: The package cannot be installed; the message has apt's own words.
    """
    with _locked(cache_directory() / ".lock"):
        found = shutil.which(name)
        if found is None:
            _install(package)
            found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"the Debian package {package} has no program {name}")
    return Path(found)


def installed(package: str) -> None:
    """Install a package with what it depends on: a library, say, for which `program` has no name to look for.

    Raises:
        RuntimeError: The package cannot be installed; the message has apt's own words.
    """
    with _locked(cache_directory() / ".lock"):
        _install(package)


def prompt_files() -> dict[str, Path]:
    """Return the studio prompts that say something: name → 8 kHz WAV file. Names as in `prompt_texts`."""
    texts = prompt_texts()
    files = package_file(PROMPTS, "usr/share/asterisk/sounds/en_US_f_Allison/**/*.wav")
    named = {
        "/".join(file.parts[file.parts.index("en_US_f_Allison") + 1 :]).removesuffix(".wav"): file for file in files
    }
    return {name: file for name, file in named.items() if name in texts}


def prompt_texts() -> dict[str, str]:
    """Return what the studio prompts say, by path without suffix (``digits/1`` → ``one``).

    Lines that describe a sound in brackets, such as ``[beep]``, are left out.
    """
    (listing,) = package_file(_PROMPT_TEXTS, "**/core-sounds-en.txt.gz")
    lines = gzip.decompress(listing.read_bytes()).decode().splitlines()
    found = (match for match in map(_TEXT_LINE.match, lines) if match)
    return {match[1]: match[2] for match in found if not match[2].startswith(("[", "("))}


def _install(package: str) -> None:
    install = ["apt-get", "-o", f"DPkg::Lock::Timeout={_TIMEOUT_S}", "install", "-y", "--no-install-recommends"]
    _with_lists([*_as_root(), *install, package])


def _download(package: str, directory: Path) -> Path:
    _with_lists(["apt-get", "download", package], directory)
    (archive,) = directory.glob("*.deb")
    return archive


def _with_lists(command: list[str], directory: Path | None = None) -> None:
    """Run an apt command; empty or stale package lists are the one cause of failure that can be mended from here."""
    try:
        _run(command, directory)
    except RuntimeError:
        _run([*_as_root(), "apt-get", "update"])
        _run(command, directory)


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


def _run(command: list[str], directory: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"{' '.join(command)} failed: {error.stderr.strip()}") from error
    except OSError as error:
        raise RuntimeError(f"{command[0]} is needed to fetch the test's audio: {error}") from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
