"""The bar of queries that a terminal shows."""

from contextlib import suppress
from types import TracebackType
from typing import Self

from tqdm import tqdm


class QueryBar:
    """Shows how many queries were made, and the time left; hidden without a terminal.

    A terminal that is closed or broken ends the bar, not the run: queries cost more
    than a bar is worth.

    Args:
        total: queries in all.
        shown: whether a terminal shows it.
    """

    def __init__(self, total: int, *, shown: bool) -> None:
        self._bar: tqdm[object] | None = None
        if shown:
            # Whatever the stream raises: it is the user's, and may be any object.
            with suppress(Exception):
                self._bar = tqdm(total=total, unit=" queries", disable=None)

    def __enter__(self) -> Self:
        return self

    def update(self, queries: int) -> None:
        """Show that some queries more were made."""
        if self._bar is not None:
            with suppress(Exception):
                self._bar.update(queries)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            with suppress(Exception):
                self._bar.close()
