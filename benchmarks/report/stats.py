"""Statistics of replicates, value functions or meta-tests: pure functions of numbers.

A difference is always `base - method` in costs, so that positive means better.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

LEVEL = 0.05
"""Level of all tests; intervals hold 1 - LEVEL."""
ROUNDING = 1e-12
"""Differences this far below the values compared are rounding, not measurement."""


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None if there is no value."""
    return fmean(values) if values else None


def sample_std(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (ddof 1), None below two values."""
    return stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Comparison:
    """A difference in mean cost, what its t-tests say, and its t interval.

    Values without any spread have no t. For them p is that of the exact test over all
    arrangements of the signs, or of the sides if they are not paired.

    Attributes:
        base: mean cost of the base.
        gain: base minus method, in mean costs.
        values: values of the base and of the method that are compared.
        error: standard error of the gain; None if there are too few values to test.
        freedom: degrees of freedom of the error.
        chance: share of the arrangements that are as extreme as one without spread.
        p_holm: p value of no difference, adjusted over its question; None before.
        p_equal_holm: the same of a difference beyond the margin.
    """

    base: float
    gain: float
    values: tuple[int, int]
    error: float | None = None
    freedom: float = 0.0
    chance: float = 1.0
    p_holm: float | None = None
    p_equal_holm: float | None = None

    @property
    def p_value(self) -> float | None:
        """Two-sided p value of no difference; None if there are too few values."""
        if self.error is None:
            return None
        return 1.0 if abs(self.gain) <= ROUNDING else self._two_sided(abs(self.gain))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The t interval of the gain; None if there are too few values."""
        if self.error is None:
            return None
        if self.error <= ROUNDING:
            return self.gain, self.gain
        from scipy.stats import t

        low, high = t.interval(1 - LEVEL, self.freedom, self.gain, self.error)
        return float(low), float(high)

    def p_equal(self, margin: float) -> float | None:
        """Return the p value of a difference of at least a margin, either way.

        Args:
            margin: the least difference that matters, in costs.

        Source: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987:
        the larger one of two one-sided tests (TOST).
        """
        if self.error is None:
            return None
        return self._beyond(margin - abs(self.gain))

    def least_p(self, greatest: float) -> float | None:
        """Return the p value that the greatest possible gain would have.

        Args:
            greatest: how far two costs can be apart.
        """
        return None if self.error is None else self._two_sided(greatest)

    def _two_sided(self, gain: float) -> float:
        return min(1.0, 2 * self._beyond(gain))

    def _beyond(self, gain: float) -> float:
        """Return the probability of an estimate beyond a gain if there is none."""
        error = self.error or 0.0
        if error <= ROUNDING:
            return self.chance if gain > ROUNDING else 1.0
        from scipy.stats import t

        return float(t.sf(gain / error, self.freedom))


def compare(
    base: Mapping[int, float],
    method: Mapping[int, float],
    *,
    paired: bool,
    test_per_train: float = 0.0,
) -> Comparison | None:
    """Compare the costs of two rows.

    Values that belong together are paired. A row without chance has a single value,
    against which all values of the other are held. Anything else is Welch's test.

    Args:
        base: costs by replicate, value function or meta-test.
        method: the same.
        paired: whether equal keys belong together; others are then left out.
        test_per_train: examples tested on per example trained on, if pairs are random
            splits of the same examples; 0 if they do not overlap so.

    Returns:
        The comparison; None if there is nothing to compare.
    """
    if paired:
        shared = [key for key in base if key in method]
        first, second = ([side[key] for key in shared] for side in (base, method))
        return _of_pairs(first, second, test_per_train) if shared else None
    first, second = list(base.values()), list(method.values())
    if not (first and second):
        return None
    if 1 in (len(first), len(second)):
        most = max(len(first), len(second))
        first, second = (s if len(s) == most else s * most for s in (first, second))
        return _of_pairs(first, second)
    return _of_sides(first, second)


def _of_pairs(
    base: Sequence[float], method: Sequence[float], test_per_train: float = 0.0
) -> Comparison:
    """Return a comparison by the t-test of differences.

    Source: Nadeau and Bengio, Machine Learning 52, 2003, the corrected resampled
    t-test: the variance of the mean is (1 / n + n_test / n_train) times that of one
    difference, because the splits overlap.
    """
    differences = [b - m for b, m in zip(base, method, strict=True)]
    n, gain = len(differences), fmean(differences)
    deviation = sample_std(differences)
    error = None
    if deviation is not None:
        error = deviation * math.sqrt(1 / n + test_per_train)
    return Comparison(fmean(base), gain, (n, n), error, n - 1, 2.0**-n)


def _of_sides(base: Sequence[float], method: Sequence[float]) -> Comparison:
    """Return a comparison by Welch's t-test; each side has two values or more."""
    from scipy.stats import sem, ttest_ind

    n, m = len(base), len(method)
    error = math.hypot(sem(base), sem(method))
    freedom = 0.0
    if error > ROUNDING:
        with warnings.catch_warnings():
            # A side without deviation, of which it warns, leaves a one-sample test.
            warnings.simplefilter("ignore", RuntimeWarning)
            freedom = float(ttest_ind(base, method, equal_var=False).df)
    gain, chance = fmean(base) - fmean(method), 1 / math.comb(n + m, n)
    return Comparison(fmean(base), gain, (n, m), error, freedom, chance)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p values for their number, step-down.

    Args:
        p_values: one per test, shape [m]; None where no test was possible, which
            counts as no test.

    Returns:
        Adjusted p values in [0, 1] in the same order, None where it was None.

    Source: Holm, Scandinavian Journal of Statistics 6, 1979: the i-th smallest p value
    times (m - i + 1), made monotone.
    """
    tested = [index for index, p in enumerate(p_values) if p is not None]
    tested.sort(key=lambda index: p_values[index] or 0.0)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, index in enumerate(tested):
        scaled = (len(tested) - rank) * (p_values[index] or 0.0)
        running = max(running, min(1.0, scaled))
        adjusted[index] = running
    return adjusted


def adjust(
    comparisons: Sequence[Comparison | None], margins: Sequence[float]
) -> list[Comparison | None]:
    """Fill in the p values adjusted over one question, see `holm`.

    Args:
        comparisons: of one method with its base, one per column.
        margins: the least differences that matter there, in costs.
    """
    differ = holm([None if one is None else one.p_value for one in comparisons])
    pairs = zip(comparisons, margins, strict=True)
    equal = holm([None if one is None else one.p_equal(m) for one, m in pairs])
    return [
        None if one is None else replace(one, p_holm=p, p_equal_holm=p_equal)
        for one, p, p_equal in zip(comparisons, differ, equal, strict=True)
    ]


def gap_closed(threshold_shift: Comparison, method: Comparison) -> float | None:
    """Return the share of the threshold shift's gain that a method reaches.

    (loss_only - method) / (loss_only - threshold_shift) on mean costs: 0 is no better
    than loss-only fine-tuning, 1 as good as the shift, and more is possible.

    Args:
        threshold_shift: the best shift against loss-only fine-tuning.
        method: the method against the same.

    Returns:
        The share; None if the gain of the shift is within noise (at most twice its
        standard error), or if there are too few values to say.
    """
    gain, error = threshold_shift.gain, threshold_shift.error
    if error is None or gain <= max(2.0 * error, ROUNDING):
        return None
    return method.gain / gain
