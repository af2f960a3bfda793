"""Norms of meta-gradients, and the steps left out where one is not finite."""

import math
import warnings

from metricopt.errors import DivergedError

MOST_SKIPPED = 100
"""Meta-gradients in a row that may be left out."""
STACK = 4
"""Frames from the warning to the line of the user's that trains."""


class GradientNorms:
    """What a meta-training records of its meta-gradients.

    Args:
        iterations: iterations of the training.

    Attributes:
        every: norm of every meta-gradient before it was clipped.
        skipped: iterations with a step left out, since its norm was not finite.
    """

    def __init__(self, iterations: int) -> None:
        self._iterations = iterations
        self.every: list[float] = []
        self.skipped: list[int] = []

    def allows_step(self, norm: float, iteration: int, advice: str) -> bool:
        """Record a norm, and return whether it is finite.

        Args:
            norm: of the meta-gradient before it is clipped.
            iteration: counted from 0.
            advice: what may help, for the error.

        Raises:
            DivergedError: if too many in a row, or all of a training, are not finite.
        """
        self.every.append(norm)
        if math.isfinite(norm):
            return True
        self.skipped.append(iteration)
        most = min(MOST_SKIPPED, len(self.every))
        enough = most == MOST_SKIPPED or iteration + 1 == self._iterations
        if enough and not any(map(math.isfinite, self.every[-most:])):
            raise DivergedError(
                f"the meta-gradient was not finite {most} times in a row, up to "
                f"iteration {iteration}: {advice}"
            )
        return False

    def warn(self) -> None:
        """Warn once of all steps that were left out, if there are any."""
        if self.skipped:
            warnings.warn(
                f"{len(self.skipped)} of {len(self.every)} meta-steps were left out, "
                "since their meta-gradient was not finite; the first one in iteration "
                f"{self.skipped[0]}, counted from 0",
                UserWarning,
                stacklevel=STACK,
            )
