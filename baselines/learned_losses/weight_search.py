"""The search of MOEW: a Gaussian process proposes vectors a batch at a time.

Source: Zhao et al., 2019, and its published example.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

Array = NDArray[np.float64]
CANDIDATES = 10_000
NOISE = 1e-4


class WeightSearch:
    """Proposes vectors in a ball by the smallest lower confidence bound of their cost.

    Args:
        dimensions: length of a vector.
        radius: radius of the ball.
        random: source of all randomness.

    Attributes:
        tried: vectors told so far.
        costs: cost of each vector, lower is better.
    """

    def __init__(
        self, dimensions: int, radius: float, random: np.random.Generator
    ) -> None:
        self.dimensions, self.radius = dimensions, radius
        self.tried: list[Array] = []
        self.costs: list[float] = []
        self._random = random

    def ask(self, count: int) -> list[Array]:
        """Return vectors to try: uniform ones at first, then those of lowest bound.

        The very first is 0, with which all examples weigh the same.
        A vector that was chosen counts as tried at its upper bound before the next one
        is chosen, so that a batch does not crowd at one place.
        """
        if not self.tried:
            return [np.zeros(self.dimensions), *self.uniform(count - 1)]
        tried, costs, found = list(self.tried), list(self.costs), list[Array]()
        for _ in range(count):
            candidates = self.uniform(CANDIDATES)
            lower, upper = self.bounds(tried, costs, candidates)
            best = int(lower.argmin())
            found.append(candidates[best])
            tried.append(candidates[best])
            costs.append(float(upper[best]))
        return found

    def tell(self, tried: Sequence[Array], costs: Sequence[float]) -> None:
        """Take note of costs."""
        self.tried += tried
        self.costs += costs

    def uniform(self, count: int) -> Array:
        """Return vectors uniform in the ball, shape [count, dimensions]."""
        directions = self._random.standard_normal((count, self.dimensions))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        shares = self._random.uniform(size=(count, 1)) ** (1 / self.dimensions)
        found: Array = self.radius * shares * directions
        return found

    def bounds(
        self, tried: Sequence[Array], costs: Sequence[float], candidates: Array
    ) -> tuple[Array, Array]:
        """Return the lower and upper bound of every candidate's cost, shape [n] each.

        They are one posterior deviation from the mean. Costs are standardised first:
        they may hardly differ.
        """
        scale = (1e-3 * self.radius, 1e3 * self.radius)
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(self.radius, scale)
        process = GaussianProcessRegressor(
            kernel, alpha=NOISE, normalize_y=True, random_state=0
        )
        with warnings.catch_warnings():
            # A length scale at its bound is no error: costs may be flat.
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(np.stack(tried), np.asarray(costs))
        mean, deviation = process.predict(candidates, return_std=True)
        return mean - deviation, mean + deviation
