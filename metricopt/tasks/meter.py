"""The one place where metric queries are counted and limited."""

from metricopt.errors import BudgetExceededError


class Meter:
    """Counts metric queries, and refuses those beyond a limit.

    Attributes:
        limit: greatest number of queries; None for no limit.
        made: queries by the split they were made on: `observe`, `train`.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.made: dict[str, int] = {}

    def __deepcopy__(self, memo: object) -> "Meter":
        """Return itself: a copy of what is metered is charged to the same meter."""
        return self

    @property
    def queries(self) -> int:
        """Metric queries made so far."""
        return sum(self.made.values())

    def require(self, count: int) -> None:
        """Check that `count` more queries are allowed, before they are made.

        Raises:
            BudgetExceededError: if they would exceed the limit.
        """
        if self.limit is not None and self.queries + count > self.limit:
            raise BudgetExceededError(
                f"{count} more metric queries after {self.queries} exceed the limit of "
                f"{self.limit}"
            )

    def charge(self, count: int, split: str = "observe") -> None:
        """Count `count` queries that were made on a split.

        Raises:
            BudgetExceededError: if they exceed the limit.
        """
        self.require(count)
        self.made[split] = self.made.get(split, 0) + count
