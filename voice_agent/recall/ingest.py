"""Learns files and folders: what has not changed is left alone, and a file that cannot be read stops no other."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from voice_agent.recall.documents import MAX_BYTES, digest_of, read_document, type_of
from voice_agent.recall.entries import Kind
from voice_agent.recall.library import Library
from voice_agent.recall.readers import Unreadable

MAX_FILES = 20_000
Progress = Callable[[str, int, int], None]
"""``progress(name, done, of)``: files so far, and of how many."""


@dataclass(slots=True)
class Report:
    """What came of it.

    Attributes:
        learnt: Names of texts that are new or have changed, with their number of passages.
        failed: (name, reason) of each that could not be learnt; what was known of it before stays.
        skipped: How many files lay in folders that are of no known type, by suffix: ``.docx``, or empty without one.
    """

    learnt: list[tuple[str, int]] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def passages(self) -> int:
        return sum(count for _, count in self.learnt)


def find_files(paths: Sequence[Path], skipped: Counter[str]) -> Iterator[tuple[Path, str | None]]:
    """Yield every file to be learnt, in order, and with a reason those that were named and cannot be.

    Hidden files and folders are left out, links to folders are not followed, and in folders only files of known types
    count.

    Args:
        skipped: Takes the number of files in folders that are of no known type, by suffix.
    """
    seen: set[str] = set()
    # Those that are named themselves are told with a reason.
    passed_over = {os.path.realpath(path) for path in paths}
    for path in paths:
        if path.is_dir():
            for folder, names, files in os.walk(path):
                names[:] = sorted(name for name in names if not name.startswith("."))
                for name in sorted(files):
                    file = Path(folder, name)
                    place = os.path.realpath(file)
                    known = type_of(name) is not None
                    met = seen if known else passed_over
                    if name.startswith(".") or place in met:
                        continue
                    met.add(place)
                    if known:
                        yield file, None
                    else:
                        skipped[file.suffix.lower()] += 1
        elif not path.exists():
            yield path, "there is no such file"
        elif type_of(path.name) is None:
            yield path, f"files of the type {path.suffix or 'without a suffix'} are not learnt"
        elif (place := os.path.realpath(path)) not in seen:
            seen.add(place)
            yield path, None


def name_of(path: Path, root: Path) -> str:
    """Return what a file is known by: its path in the project, or its whole path where it lies elsewhere."""
    # Not `Path.resolve`: it raises where a link leads to itself.
    whole = Path(os.path.realpath(path))
    name = (whole.relative_to(root) if whole.is_relative_to(root) else whole).as_posix()
    # A name of bytes that are no UTF-8 can neither be kept nor shown.
    return os.fsencode(name).decode("utf-8", "replace")


async def learn_files(
    library: Library,
    root: Path,
    paths: Sequence[Path],
    *,
    prune: bool = False,
    progress: Progress = lambda name, done, of: None,
) -> Report:
    """Learn files and folders. The library is open.

    Args:
        root: The project.
        prune: Unlearn what was learnt from ``paths`` and is not there any more.

    Raises:
        EmbeddingFailed, IndexUnavailable: What was learnt up to then is kept.
        RemediableError: A parser's package is not installed.
    """
    root, report = await asyncio.to_thread(root.resolve), Report()
    known = {source.name: source.digest for source in await library.sources(Kind.DOCUMENT)}
    found = await asyncio.to_thread(lambda: list(find_files(paths, report.skipped)))
    if len(found) > MAX_FILES:
        report.failed += [
            (name_of(path, root), f"only {MAX_FILES} files are learnt at once") for path, _ in found[MAX_FILES:]
        ]
    present: set[str] = set()
    for number, (path, fault) in enumerate(found[:MAX_FILES]):
        name = name_of(path, root)
        progress(name, number, len(found))
        gone = fault is not None and not path.exists()
        if not gone:
            present.add(name)
        if fault is not None:
            if not (gone and prune and name in known):
                report.failed.append((name, fault))
            continue
        try:
            await _learn_file(library, path, name, known.get(name), report)
        except Unreadable as unreadable:
            report.failed.append((name, str(unreadable)))
        except OSError as error:
            report.failed.append((name, error.strerror or str(error)))
    if prune:
        places = [name_of(path, root) for path in paths]
        for name in known:
            if name not in present and any(_lies_in(name, place) for place in places):
                await library.unlearn(name)
                report.removed.append(name)
    progress("", len(found), len(found))
    return report


async def _learn_file(library: Library, path: Path, name: str, known: str | None, report: Report) -> None:
    media_type = type_of(path.name)
    assert media_type is not None
    data = await asyncio.to_thread(_read, path)
    if known == digest_of(data, media_type):
        report.unchanged.append(name)
        return
    document = await asyncio.to_thread(read_document, name, data, media_type)
    source = await library.learn(document)
    report.learnt.append((name, source.passages))


def _read(path: Path) -> bytes:
    if not path.is_file():
        # A pipe would be waited for without end.
        raise Unreadable("it is no file" if path.exists() else "there is no such file")
    with path.open("rb") as file:
        # One byte more than is allowed tells that it is too large, whatever its size was said to be.
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Unreadable(f"it is larger than {MAX_BYTES // 2**20} MB")
    return data


def _lies_in(name: str, place: str) -> bool:
    return (place == "." and not name.startswith("/")) or name == place or name.startswith(f"{place.rstrip('/')}/")
