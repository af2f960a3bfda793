"""The bar of queries that a terminal shows."""

from contextlib import suppress
from typing import Self

from tqdm import tqdm


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
    """Shows how many queries of all were made, and the time left, in a terminal.

    A terminal that is closed or broken ends the bar, not the run: queries cost more
    than a bar is worth.
    """

    def __init__(self, total: int, *, shown: bool) -> None:
        self._bar: _Bar | None = None
        if shown:
            # Whatever the stream raises: it is the user's, and may be any object.
            with suppress(Exception):
                self._bar = _Bar(total=total, unit=" queries", disable=None)

    def __enter__(self) -> Self:
        return self

    def update(self, queries: int) -> None:
        """Show that some queries more were made."""
        if self._bar is not None:
            with suppress(Exception):
                self._bar.update(queries)

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            with suppress(Exception):
                self._bar.close()
