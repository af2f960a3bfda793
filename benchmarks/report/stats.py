"""Statistics of replicates or meta-tests: pure functions of numbers.

A difference is always `base - method` in costs, so that positive means better.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean, stdev
from typing import Any

ROUNDING = 1e-12
"""Differences this far below the values compared are rounding, not measurement."""


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None if there is no value."""
    return fmean(values) if values else None


def sample_std(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (ddof 1), None below two values."""
    return stdev(values) if len(values) > 1 else None


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean, None below two values."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def paired_p_value(differences: Sequence[float]) -> float | None:
    """Return the two-sided p value of the paired t-test of zero mean difference.

    Args:
        differences: one per replicate, shape [n].

    Returns:
        p in [0, 1]; None below two replicates; 1 if all differences are zero. Equal
        differences other than zero have no deviation and hence no t. For them p is
        that of the exact sign-flip test: 2 ** (1 - n).
    """
    error = standard_error(differences)
    if error is None:
        return None
    if max(abs(value) for value in differences) <= ROUNDING:
        return 1.0
    if error <= ROUNDING:
        return 2.0 ** (1 - len(differences))
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0.0).pvalue)


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


def bootstrap_interval(
    differences: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Return the percentile bootstrap interval of the mean difference.

    Whole pairs are drawn: what both arms of a replicate share stays shared.

    Args:
        differences: one per replicate, shape [n].
        level: share of the resampled means inside the interval, in (0, 1).
        resamples: number of resamples.
        seed: of the resampling; the same seed gives the same interval.

    Returns:
        Lower and upper end; None below two replicates.
    """
    if len(differences) < 2:
        return None
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (differences,),
        np.mean,
        n_resamples=resamples,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    low, high = found.confidence_interval
    return float(low), float(high)


def welch_error(base: Sequence[float], method: Sequence[float]) -> float | None:
    """Return the standard error of a difference in means of unpaired values.

    Args:
        base: costs, shape [n].
        method: costs, shape [m].

    Returns:
        The error; None below two values on a side.
    """
    first, second = standard_error(base), standard_error(method)
    if first is None or second is None:
        return None
    return math.hypot(first, second)


def welch_p_value(base: Sequence[float], method: Sequence[float]) -> float | None:
    """Return the two-sided p value of Welch's t-test of equal means.

    Args:
        base: costs, shape [n].
        method: costs, not paired with those, shape [m].

    Returns:
        p in [0, 1]; None below two values on a side; 1 if both are the same constant.
        Two other constants have no t. For them p is that of the exact permutation
        test. The observed split is its most extreme one, so p is as small as it can be.

    Source: Welch, Biometrika 34, 1947.
    """
    error = welch_error(base, method)
    if error is None:
        return None
    gain = fmean(base) - fmean(method)
    if error <= ROUNDING:
        ways = math.comb(len(base) + len(method), len(base))
        extreme = 2 if len(base) == len(method) else 1
        return 1.0 if abs(gain) <= ROUNDING else extreme / ways
    return float(_welch_test(base, method).pvalue)


def welch_interval(
    base: Sequence[float], method: Sequence[float], *, level: float = 0.95
) -> tuple[float, float] | None:
    """Return Welch's confidence interval of a difference in means.

    Args:
        base: costs, shape [n].
        method: costs, not paired with those, shape [m].
        level: of confidence, in (0, 1).

    Returns:
        Lower and upper end; None below two values on a side.
    """
    error = welch_error(base, method)
    if error is None:
        return None
    if error <= ROUNDING:
        gain = fmean(base) - fmean(method)
        return gain, gain
    low, high = _welch_test(base, method).confidence_interval(level)
    return float(low), float(high)


@dataclass(frozen=True)
class Comparison:
    """A method against a base, in costs.

    Attributes:
        base: costs of the base, shape [n].
        method: costs of the method, shape [m]; m = n if they are paired.
        paired: whether values at the same place belong together.
        p_holm: p value adjusted over all comparisons it is shown with, None before.
    """

    base: tuple[float, ...]
    method: tuple[float, ...]
    paired: bool
    p_holm: float | None = None

    @property
    def differences(self) -> tuple[float, ...]:
        """One per value of the method: from its pair, or else the mean of the base."""
        base = self.base if self.paired else [fmean(self.base)] * len(self.method)
        return tuple(b - m for b, m in zip(base, self.method, strict=True))

    @property
    def gain(self) -> float:
        """Mean difference."""
        return fmean(self.differences)

    @property
    def error(self) -> float | None:
        """Standard error of the gain, None below two values."""
        if self.paired:
            return standard_error(self.differences)
        return welch_error(self.base, self.method)

    @property
    def p_value(self) -> float | None:
        """The p value of no difference: paired t-test, or Welch's."""
        if self.paired:
            return paired_p_value(self.differences)
        return welch_p_value(self.base, self.method)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the gain: bootstrap of the pairs, or Welch's."""
        if self.paired:
            return bootstrap_interval(self.differences)
        return welch_interval(self.base, self.method)


def compare(
    base: Mapping[int, Sequence[float]], method: Mapping[int, Sequence[float]]
) -> Comparison | None:
    """Compare the costs of two arms in the replicates both have.

    Values are paired by replicate. If an arm without chance has a single value, it is
    paired with every value of the other arm. Several values on both sides are not
    paired: the two arms need not draw alike.

    Args:
        base: costs by replicate, at least one each.
        method: costs by replicate, at least one each.

    Returns:
        The comparison; None if no replicate is shared.
    """
    shared = sorted(set(base) & set(method))
    if not shared:
        return None
    pairs: list[tuple[float, float]] = []
    for replicate in shared:
        sides = (base[replicate], method[replicate])
        if min(map(len, sides)) > 1:
            return Comparison(_joined(base, shared), _joined(method, shared), False)
        pairs += product(*sides)
    paired_base, paired_method = zip(*pairs, strict=True)
    return Comparison(paired_base, paired_method, True)


def adjust(comparisons: Sequence[Comparison | None]) -> list[Comparison | None]:
    """Fill in the p values adjusted over all of these, see `holm`."""
    adjusted = holm([None if one is None else one.p_value for one in comparisons])
    return [
        None if one is None else replace(one, p_holm=p)
        for one, p in zip(comparisons, adjusted, strict=True)
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


def _joined(
    values: Mapping[int, Sequence[float]], replicates: Sequence[int]
) -> tuple[float, ...]:
    return tuple(value for replicate in replicates for value in values[replicate])


def _welch_test(base: Sequence[float], method: Sequence[float]) -> Any:
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():
        # A side without deviation, of which it warns, leaves a one-sample test.
        warnings.simplefilter("ignore", RuntimeWarning)
        return ttest_ind(base, method, equal_var=False)
