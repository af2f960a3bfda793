"""How far a call is: a bar in a terminal, a line now and then elsewhere."""

import sys
import time
from contextlib import suppress
from typing import Self

from tqdm import tqdm

EVERY = 30.0
"""Seconds between two lines where there is no terminal."""


class _Bar(tqdm):
    def refresh(
        self, nolock: bool = False, lock_args: tuple[object, ...] | None = None
    ) -> bool | None:
        """Draw the bar, and let go of the lock that all bars of the process share.

        tqdm itself keeps it if the stream fails, and bars in other threads would hang.
        """
        with self.get_lock():
            drawn: bool | None = super().refresh(nolock=True)
            return drawn


class QueryBar:
    """Shows how many queries of all were made, and the time left.

    A terminal gets a bar, which names what is done between queries. Anything else gets
    a plain line at most every 30 seconds. A stream that is closed or broken ends that,
    not the run: queries cost more than a bar is worth.
    """

    def __init__(self, total: int, *, shown: bool) -> None:
        self._bar: _Bar | None = None
        self._total, self._made, self._best = total, 0, ""
        self._shown = shown
        self._began = self._said = time.monotonic()
        if shown:
            # Whatever the stream raises: it is the user's, and may be any object.
            with suppress(Exception):
                self._bar = _Bar(total=total, unit=" queries", disable=None)

    def __enter__(self) -> Self:
        return self

    def update(self, queries: int, best: float | None = None) -> None:
        """Show that some queries more were made, and the best value."""
        self._made += queries
        self._best = self._best if best is None else f", best {best:.4g}"
        if self._bar is not None:
            with suppress(Exception):
                self._bar.update(queries)
        self._line("")

    def stage(self, what: str) -> None:
        """Show what is done until the next query."""
        if self._bar is not None:
            with suppress(Exception):
                self._bar.set_description_str(what)
        self._line(f", {what}")

    def _line(self, more: str) -> None:
        """Write a line, unless there is a bar, or the last one was just now."""
        now = time.monotonic()
        bar = self._bar is not None and not self._bar.disable
        if not self._shown or bar or now - self._said < EVERY:
            return
        self._said, spent = now, now - self._began
        left = ""
        if self._made:
            still = spent / self._made * max(0, self._total - self._made)
            left = f", at most about {still:.0f} s more"
        with suppress(Exception):
            print(
                f"metricopt: {self._made} of {self._total} queries in {spent:.0f} s"
                f"{self._best}{left}{more}",
                file=sys.stderr,
                flush=True,
            )

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            with suppress(Exception):
                self._bar.close()
