"""Timings side by side, and their table."""

import time
from collections.abc import Callable, Sequence

from tabulate import tabulate

Line = tuple[str, str]
"""What was measured, and the value with its unit."""


def as_table(lines: Sequence[Line]) -> str:
    """Return measurements as a table for the terminal."""
    headings = ("what", "measured")
    return tabulate(lines, headings, tablefmt="plain", disable_numparse=True)


def interleaved(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the least seconds of each, all in turn, so that load hits them alike."""
    for work in works:
        work()
    rounds = [[_seconds(work) for work in works] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
