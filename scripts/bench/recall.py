"""Indexes for recall side by side: a question against N passages, memory, start-up, and a kill in mid-write.

    python scripts/bench/recall.py [--passages 10000] [--questions 200] [--only sqlite,numpy] [--json FILE]

Each candidate runs in a process of its own. Those whose package is missing are left out: `pip install qdrant-client
sqlite-vec lancedb` brings them. Vectors are random (a search costs the same), questions are embedded for real.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

DIMENSIONS, BATCH, LIMIT = 384, 100, 5
SYLLABLES = ["ba", "co", "du", "fe", "gi", "ka", "lo", "mu", "ne", "pi", "ra", "so", "tu", "ve", "wi", "za"]
QUESTION = "How long does it take until the light of router {} turns green?"
VOCABULARY = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]
"""4,096 words; the more common they are the more of them stand in a text: the first in one of ten or so."""


def sentence(number: int, words: int) -> str:
    """Return text number ``number``: always the same, and no two alike."""
    places = len(VOCABULARY) * np.random.default_rng(number).random(words) ** 3
    return " ".join(VOCABULARY[int(place)] for place in places)


class Numpy:
    """The baseline: blobs in SQLite, one matrix in memory."""

    packages: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.db = sqlite3.connect(folder / "n.sqlite3", isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("CREATE TABLE IF NOT EXISTS p (key INTEGER PRIMARY KEY, text TEXT, vector BLOB)")
        rows = self.db.execute("SELECT vector FROM p ORDER BY key").fetchall()
        self.matrix = np.frombuffer(b"".join(r[0] for r in rows), np.float32).reshape(-1, DIMENSIONS)

    def add(self, first: int, vectors: Any) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(
            "INSERT INTO p VALUES (?, ?, ?)",
            [(first + n, sentence(first + n, 70), v.tobytes()) for n, v in enumerate(vectors)],
        )
        self.db.execute("COMMIT")

    def count(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM p").fetchone()[0])

    def search(self, vector: Any, words: str) -> int:
        scores = self.matrix @ vector
        best = np.argpartition(-scores, LIMIT)[:LIMIT]
        marks = ",".join("?" * LIMIT)
        return len(self.db.execute(f"SELECT text FROM p WHERE key IN ({marks})", [int(b) for b in best]).fetchall())


class Ours:
    """`voice_agent.recall.sqlite_index`: the same with words, ownership and change detection."""

    packages: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        from voice_agent.recall.sqlite_index import SqliteIndex

        self.index = SqliteIndex(folder / "ours.sqlite3")
        self.index.open("bench")

    def add(self, first: int, vectors: Any) -> None:
        from voice_agent.recall.entries import Kind, Passage, Source

        passages = [Passage("", sentence(first + n, 70), f"{first}.md") for n in range(len(vectors))]
        self.index.replace(Source(Kind.DOCUMENT, "", f"{first}.md", "d"), passages, vectors)

    def count(self) -> int:
        from voice_agent.recall.entries import Kind

        return sum(source.passages for source in self.index.sources(Kind.DOCUMENT))

    def search(self, vector: Any, words: str) -> int:
        return len(self.index.search(vector, words, documents=True, owners=(), limit=LIMIT, threshold=-1.0))


class SqliteVec:
    packages = ("sqlite-vec",)

    def __init__(self, folder: Path) -> None:
        import sqlite_vec

        self.db = sqlite3.connect(folder / "v.sqlite3", isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.enable_load_extension(True)
        sqlite_vec.load(self.db)
        self.db.execute("CREATE TABLE IF NOT EXISTS p (key INTEGER PRIMARY KEY, text TEXT)")
        self.db.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS v USING vec0 (vector float[{DIMENSIONS}] distance_metric=cosine)"
        )

    def add(self, first: int, vectors: Any) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        numbered = list(enumerate(vectors, first + 1))
        self.db.executemany("INSERT INTO p VALUES (?, ?)", [(n, sentence(n, 70)) for n, _ in numbered])
        self.db.executemany("INSERT INTO v (rowid, vector) VALUES (?, ?)", [(n, v.tobytes()) for n, v in numbered])
        self.db.execute("COMMIT")

    def count(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM v").fetchone()[0])

    def search(self, vector: Any, words: str) -> int:
        query = "SELECT p.text FROM v JOIN p ON p.key = v.rowid WHERE v.vector MATCH ? AND k = ? ORDER BY distance"
        return len(self.db.execute(query, (vector.tobytes(), LIMIT)).fetchall())


class Qdrant:
    packages = ("qdrant-client", "grpcio", "protobuf", "portalocker")

    def __init__(self, folder: Path) -> None:
        from qdrant_client import QdrantClient, models

        self.models, self.client = models, QdrantClient(path=str(folder / "qdrant"))
        if not self.client.collection_exists("p"):
            params = models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
            self.client.create_collection("p", vectors_config=params)

    def add(self, first: int, vectors: Any) -> None:
        point = self.models.PointStruct
        self.client.upsert(
            "p",
            [point(id=first + n, vector=v.tolist(), payload={"text": sentence(n, 70)}) for n, v in enumerate(vectors)],
        )

    def count(self) -> int:
        return int(self.client.count("p").count)

    def search(self, vector: Any, words: str) -> int:
        return len(self.client.query_points("p", query=vector.tolist(), limit=LIMIT).points)


class Lance:
    packages = ("lancedb", "pyarrow")

    def __init__(self, folder: Path) -> None:
        import lancedb
        import pyarrow

        self.db = lancedb.connect(str(folder / "lance"))
        schema = pyarrow.schema([("text", pyarrow.string()), ("vector", pyarrow.list_(pyarrow.float32(), DIMENSIONS))])
        self.table = self.db.create_table("p", schema=schema, exist_ok=True)

    def add(self, first: int, vectors: Any) -> None:
        self.table.add([{"text": sentence(first + n, 70), "vector": v} for n, v in enumerate(vectors)])

    def count(self) -> int:
        return int(self.table.count_rows())

    def search(self, vector: Any, words: str) -> int:
        return len(self.table.search(vector).metric("cosine").limit(LIMIT).to_list())


CANDIDATES: dict[str, Callable[[Path], Any]] = {
    "numpy": Numpy, "ours": Ours, "sqlite-vec": SqliteVec, "qdrant": Qdrant, "lancedb": Lance,
}  # fmt: skip


def vectors(count: int, seed: int = 7) -> Any:
    found = np.random.default_rng(seed).standard_normal((count, DIMENSIONS), np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measure(name: str, folder: Path, passages: int, questions: int) -> dict[str, float]:
    """In a process of its own: open what `write` has left, and ask."""
    from voice_agent.llm.embedded.minilm import MiniLm

    encoder = MiniLm(cached=0)
    encoder.encode("warm")
    before, began = rss_mb(), time.perf_counter()
    index = CANDIDATES[name](folder)
    index.search(vectors(1)[0], "router")
    opened = time.perf_counter() - began
    whole: list[float] = []
    alone: list[float] = []
    cpu = time.process_time()
    for number in range(questions):
        text = sentence(10**9 + number, 9)
        began = time.perf_counter()
        vector = encoder.encode(QUESTION.format(number))
        between = time.perf_counter()
        index.search(vector, text)
        ended = time.perf_counter()
        whole.append(ended - began)
        alone.append(ended - between)
    cpu = (time.process_time() - cpu) / questions
    return {
        "open_s": opened,
        "p95_ms": 1000 * float(np.percentile(whole, 95)),
        "search_p50_ms": 1000 * float(np.median(alone)),
        "search_p95_ms": 1000 * float(np.percentile(alone, 95)),
        "cpu_ms": 1000 * cpu,
        "memory_mb": rss_mb() - before,
    }


def write(name: str, folder: Path, passages: int) -> None:
    """In a process of its own; says on standard output how many are in."""
    index, given = CANDIDATES[name](folder), vectors(passages)
    for first in range(0, passages, BATCH):
        index.add(first, given[first : first + BATCH])
        print(first + BATCH, flush=True)


def child(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def killed(name: str, passages: int) -> str:
    """Kill the writer after it has acknowledged some batches; say what a reader finds afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        writer = child("--write", name, folder, passages)
        acknowledged = 0
        assert writer.stdout is not None
        for line in writer.stdout:
            acknowledged = int(line)
            if acknowledged >= 7 * BATCH:
                break
        time.sleep(0.013)
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *(int(line) for line in writer.stdout.read().split())])
        writer.wait()
        reader = child("--count", name, folder)
        out, error = reader.communicate(timeout=120)
        if reader.returncode:
            return f"cannot be opened: {error.strip().splitlines()[-1][:60]}"
        found = int(out)
        if found < acknowledged:
            return f"lost {acknowledged - found} acknowledged"
        return "whole" if found % BATCH == 0 else f"half a batch ({found % BATCH} of {BATCH})"


def weight(names: tuple[str, ...]) -> float:
    total = 0
    for name in names:
        for file in importlib.metadata.files(name) or ():
            path = Path(str(file.locate()))
            total += path.stat().st_size if path.exists() else 0
    return total / 2**20


def present(names: list[str]) -> Iterator[str]:
    for name in names:
        try:
            weight(CANDIDATES[name].packages)  # type: ignore[attr-defined]
        except importlib.metadata.PackageNotFoundError as missing:
            print(f"{name}: left out, {missing} is not installed", file=sys.stderr)
        else:
            yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--only", default=",".join(CANDIDATES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--count", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write(given.write[0], Path(given.write[1]), int(given.write[2]))
    elif given.count:
        print(CANDIDATES[given.count[0]](Path(given.count[1])).count())
    elif given.measure:
        name, folder, passages, questions = given.measure
        print(json.dumps(measure(name, Path(folder), int(passages), int(questions))))
    else:
        compare(given)


def compare(given: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    names = list(present(given.only.split(",")))
    results: dict[str, dict[str, Any]] = {}
    with Progress(console=Console(stderr=True)) as progress:
        for name in names:
            task = progress.add_task(f"{name}: writing", total=given.passages)
            with tempfile.TemporaryDirectory() as folder:
                began = time.perf_counter()
                writer = child("--write", name, folder, given.passages)
                assert writer.stdout is not None
                for line in writer.stdout:
                    progress.update(task, completed=int(line))
                error = writer.communicate()[1]
                if writer.returncode:
                    print(f"{name} cannot be used here: {error.strip().splitlines()[-1]}", file=sys.stderr)
                    continue
                wrote = time.perf_counter() - began
                progress.update(task, description=f"{name}: asking")
                asker = child("--measure", name, folder, given.passages, given.questions)
                out, error = asker.communicate()
                if asker.returncode:
                    raise SystemExit(f"{name}: {error}")
                size = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file()) / 2**20
            progress.update(task, description=f"{name}: killing")
            results[name] = {
                **json.loads(out),
                "write_s": wrote,
                "disk_mb": size,
                "kill": killed(name, given.passages),
                "install_mb": weight(CANDIDATES[name].packages),  # type: ignore[attr-defined]
            }
            progress.update(task, description=name)
    columns = ["p95_ms", "search_p50_ms", "search_p95_ms", "cpu_ms", "open_s", "memory_mb", "write_s", "disk_mb"]
    table = Table(title=f"{given.passages} passages x {DIMENSIONS}, {given.questions} questions")
    for title in ("index", *columns, "install_mb", "after a kill"):
        table.add_column(title)
    for name, row in results.items():
        numbers = [f"{row[column]:.2f}" for column in [*columns, "install_mb"]]
        table.add_row(name, *numbers, row["kill"])
    Console(width=160).print(table)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
