"""What a phi is expected to gain on other data."""

from dataclasses import dataclass

INTERVAL = 1.96
"""Standard errors to either side of an estimate that make an interval of 95 %."""


@dataclass(frozen=True)
class Estimate:
    """What is expected to be gained on examples that chose nothing.

    Attributes:
        value: the estimate, native units, positive if better.
        low, high: ends of its interval of 95 %.
    """

    value: float
    low: float
    high: float

    def describe(self) -> str:
        """Return what is to be expected; less only where bounds are to be met."""
        word, price, ends = "better", "", (self.low, self.high)
        if self.value < 0:
            word, price, ends = "worse", ", for the bounds", (-self.high, -self.low)
        return (
            f"{word} by {abs(self.value):.4g} (95 % interval {ends[0]:.4g} to "
            f"{ends[1]:.4g}){price}"
        )
