"""The scale on which values of a metric are costs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Native values that have the costs 0 and 1, see `to_cost`.

    Attributes:
        low: low end of the scale.
        high: high end; not a limit where the metric promises none.
        higher_is_better: whether the cost is 0 at the high end.
    """

    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = False
