"""The embedded model: how often it is right on the labelled caller lines, and what a decision costs.

    python scripts/bench/embedded.py [--repeat N] [--wrong]

A decision is one model call. "new" computes the vector of a line never seen before (descriptions
are cached, as in a running service); "known" finds it in the cache.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.caller_lines import Agent, Line, load, outcome
from voice_agent.llm.embedded.minilm import MiniLm

console = Console()


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def accuracy(agent: Agent, lines: list[Line], encoder: MiniLm, *, show_wrong: bool) -> dict[str, tuple[int, int]]:
    """Return right and all lines per kind of label."""
    found: dict[str, tuple[int, int]] = {}
    for line in lines:
        kind = line.label if line.label in ("knowledge", "out_of_scope", "small_talk") else "skill"
        got, decision = outcome(agent, line.text, encoder.similarities)
        right, total = found.get(kind, (0, 0))
        found[kind] = (right + (got == line.label), total + 1)
        if show_wrong and got != line.label:
            console.print(f"  [dim]{line.label} → {got}:[/dim] {line.text} [dim]{decision.text}[/dim]")
    return found


def cost(run: Callable[[str], object], texts: list[str]) -> tuple[list[float], float]:
    """Return wall milliseconds per line, and CPU milliseconds per line in the mean."""
    walls, started = [], time.process_time()
    for text in texts:
        began = time.perf_counter()
        run(text)
        walls.append((time.perf_counter() - began) * 1000)
    return walls, (time.process_time() - started) * 1000 / len(texts)


@click.command()
@click.option("--repeat", default=5, show_default=True, help="How often each line is timed.")
@click.option("--wrong", is_flag=True, help="List the lines that went wrong.")
def main(repeat: int, wrong: bool) -> None:
    encoder = MiniLm()
    began = time.perf_counter()
    encoder.load()
    load_s = time.perf_counter() - began

    right = Table("lines", "skill", "knowledge", "out of scope", "small talk", "all", title="Right decisions")
    for part in ("tuned", "unseen"):
        agent, lines = load(part)
        kinds = accuracy(agent, lines, encoder, show_wrong=wrong)
        good, total = (sum(column) for column in zip(*kinds.values(), strict=True))
        cells = [f"{kinds[kind][0]}/{kinds[kind][1]}" for kind in ("skill", "knowledge", "out_of_scope", "small_talk")]
        right.add_row(part, *cells, f"{good}/{total} ({good / total:.0%})")
    console.print(right)

    agent, lines = load("tuned")
    spent = Table(
        "", "median ms", "p95 ms", "CPU-ms", title=f"One line to its outcome (weights loaded in {load_s:.2f} s)"
    )
    rounds = [(n, line.text) for n in range(repeat) for line in lines]
    # A number in front makes a new sentence of a known one, of the same length but for one token.
    texts = {"new": [f"{n}{i} {text}" for i, (n, text) in enumerate(rounds)], "known": [text for _, text in rounds]}
    for name, chosen in texts.items():
        walls, cpu = cost(lambda text: outcome(agent, text, encoder.similarities), chosen)
        spent.add_row(name, f"{statistics.median(walls):.1f}", f"{_quantile(walls, 0.95):.1f}", f"{cpu:.1f}")
    console.print(spent)


if __name__ == "__main__":
    main()
