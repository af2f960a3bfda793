"""What watches a call: log, bar, a callback of the user's, and the clock."""

import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from statistics import median

from torch import Tensor

from metricopt.process.query_bar import QueryBar

LOGGER = logging.getLogger("metricopt")
SEARCHED = 0.7
"""Share of the time in which the search asks; the rest is for the conclusion."""
CONCLUDING = 3
"""Queries that the conclusion takes at least."""
RECENT = 9
"""Last queries that say how long one takes: answers from a checkpoint come first."""
CONCLUDED = 0.9
"""Share of the time after which nothing long is begun; the rest is for a last query."""
Callback = Callable[[int, float, float], object]
"""Called with the number of queries, the value of the last one, and the best value."""


class SearchEnded(Exception):  # noqa: N818
    """Ends a search that does not look at the clock by itself."""


class Watch:
    """Says how far a call is, and when its search has to end.

    Args:
        bar: the bar, or what a terminal shows otherwise.
        total: queries that may be made.
        callback: called after every query of the whole observe split, in native units;
            if it returns True, the search ends.
        timeout: seconds in which the whole call should end; None for no limit.

    Attributes:
        total: queries that may be made.
        queries: queries made.
        reason: what ended the search before its queries were spent; "" if nothing did.
        cut: what ended computations between queries early; "" if nothing did.
    """

    def __init__(
        self,
        bar: QueryBar,
        total: int,
        *,
        callback: Callback | None = None,
        timeout: float | None = None,
    ) -> None:
        self._bar, self.total = bar, total
        self._callback, self._timeout = callback, timeout
        self.began = time.perf_counter()
        self.queries, self.reason, self.cut, self._left_out = 0, "", "", False
        self._seen, self._ends, self._asked_to_end = 0, False, False
        self._first, self._last = 0.0, 0.0
        self._took: deque[float] = deque([0.0], maxlen=RECENT)

    @property
    def seconds(self) -> float:
        """Seconds since the call began."""
        return time.perf_counter() - self.began

    def say(self, what: str) -> None:
        """Log a sentence."""
        LOGGER.info(what)

    def stage(self, what: str) -> None:
        """Show and log what is done between queries."""
        self._bar.stage(what)
        LOGGER.info("%s", what)

    def estimate(self, seconds: float) -> None:
        """Log how long all queries take if one takes so long."""
        LOGGER.info(
            "a pass over observe takes about %.3g s, %d queries about %.3g s without "
            "the metric's own time",
            seconds,
            self.total,
            seconds * self.total,
        )

    def queried(self, count: int, values: Tensor, costs: Tensor) -> None:
        """Take note of some queries more.

        Args:
            count: queries just made, also of parts of the observe split.
            values: native values of all queries of the whole split, shape [n].
            costs: costs of the same, lower is better, shape [n].

        Raises:
            SearchEnded: if the search has to end, and does not look by itself.
        """
        self._last = self.seconds
        self._first = self._first or self._last
        before = self.queries
        self.queries += count
        best = None
        for place in range(self._seen, len(values)):
            value = values[place].item()
            best = values[int(costs[: place + 1].argmin())].item()
            query = min(before + place - self._seen + 1, self.queries)
            LOGGER.info("query %d: %.6g, best %.6g", query, value, best)
            if self._callback is not None and self._callback(query, value, best):
                self._asked_to_end = True
        self._seen = len(values)
        self._bar.update(count, best)
        if self._ends and self.is_over:
            raise SearchEnded

    @property
    def is_over(self) -> bool:
        """Whether the search has to end; whoever asks is taken to end it then."""
        if self._asked_to_end:
            self.reason = "the callback"
        elif self._timeout is not None and self._is_late(self._timeout):
            self.reason = f"timeout={self._timeout:g}"
        return bool(self.reason)

    @property
    def ended_early(self) -> bool:
        """Whether the clock or the callback has ended anything early so far."""
        return bool(self.reason or self.cut or self._left_out)

    @property
    def is_late(self) -> bool:
        """Whether what takes long has to end; whoever asks is taken to end it then."""
        if self._timeout is not None and self.seconds > CONCLUDED * self._timeout:
            self.cut = f"timeout={self._timeout:g}"
        return bool(self.cut)

    def took(self, seconds: float) -> None:
        """Take note of how long a query took, without computations between queries."""
        self._took.append(seconds)

    def affordable(self, wanted: int) -> int:
        """Return how many of some queries there is time for, and for one in the end."""
        if self._timeout is None:
            return wanted
        each, left = median(self._took), self._timeout - self.seconds
        if each * (wanted + 1) <= left:
            return wanted
        self._left_out = True
        return max(0, int(left / each) - 1) if each else 0

    def doubts(self, made: int, *, said: bool) -> list[str]:
        """Return a sentence for everything that ended early, after `made` queries.

        The end of the search is left out if it was `said` already.
        """
        doubts = []
        if self.reason and not said:
            doubts.append(
                f"{self.reason} ended the search; {made} of {self.total} queries were "
                "made."
            )
        if self.cut:
            doubts.append(
                f"{self.cut} ended computations between queries early; the choice is "
                "from what was found until then."
            )
        return doubts

    def searching(self, *, looks: bool) -> AbstractContextManager[object]:
        """Let `queried` end a search that does not look at `is_over`."""
        stack = ExitStack()
        self._ends = not looks
        stack.callback(setattr, self, "_ends", False)
        return stack

    def _is_late(self, timeout: float) -> bool:
        each = (self._last - self._first) / max(1, self.queries - 1)
        kept = max((1 - SEARCHED) * timeout, CONCLUDING * each)
        return self.seconds + kept > timeout
