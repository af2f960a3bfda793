"""What a phi is expected to gain on other data."""

from dataclasses import dataclass, replace

INTERVAL = 1.96
"""Standard errors to either side of an estimate that make an interval of 95 %."""
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""The same where the error is that of so many parts: Student's distribution."""


@dataclass(frozen=True)
class Estimate:
    """What is expected to be gained on examples that chose nothing.

    Attributes:
        value: the estimate, native units, positive if better.
        low, high: ends of its interval of 95 %.
        is_of_choice: whether it is of examples that have chosen phi, too. Then the gain
            on others is likely to be less, and the interval is one of chance alone.
    """

    value: float
    low: float
    high: float
    is_of_choice: bool = False

    def less(self, known: float) -> "Estimate":
        """Return the gain over a start that is better by `known`."""
        ends = self.low - known, self.high - known
        return replace(self, value=self.value - known, low=ends[0], high=ends[1])

    def describe(self, *, bounded: bool = False) -> str:
        """Return what is to be expected; bounds, if there are any, explain a loss."""
        word, price, ends = "better", "", (self.low, self.high)
        if self.value < 0:
            word, ends = "worse", (-self.high, -self.low)
            price = ", for the bounds" if bounded else ""
        return (
            f"{word} by {abs(self.value):.4g} (95 % interval {ends[0]:.4g} to "
            f"{ends[1]:.4g}){price}"
        )


@dataclass(frozen=True)
class SeenOnParts:
    """What a phi gained on parts of the observe split, which have chosen it, too.

    Attributes:
        gain: decrease of the cost.
        error: standard error of the gain.
        parts: number of parts, 2 to 5.
    """

    gain: float
    error: float
    parts: int

    def estimate(self, unit: float) -> Estimate:
        """Return what was gained; a cost of 1 is the unit in native units."""
        gain, wide = unit * self.gain, unit * STUDENT[self.parts] * self.error
        return Estimate(gain, gain - wide, gain + wide, is_of_choice=True)
