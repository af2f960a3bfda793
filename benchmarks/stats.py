"""Statistics of replicates: pure functions of numbers.

A difference is always `base - method` in costs, so that positive means better.
"""

import math
from collections.abc import Sequence

ROUNDING = 1e-12
"""Differences this far below the values compared are rounding, not measurement."""


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None if there is no value."""
    return math.fsum(values) / len(values) if values else None


def sample_std(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (ddof 1), None below two values."""
    if len(values) < 2:
        return None
    centre = math.fsum(values) / len(values)
    squares = math.fsum((value - centre) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1))


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean, None below two values."""
    std = sample_std(values)
    return None if std is None else std / math.sqrt(len(values))


def paired_p_value(differences: Sequence[float]) -> float | None:
    """Return the two-sided p value of the paired t-test of zero mean difference.

    Args:
        differences: one per replicate, shape [n].

    Returns:
        p in [0, 1]; None below two replicates; 1 if all differences are zero. Equal
        differences other than zero have no deviation and hence no t: the exact
        sign-flip test takes over, p = 2 ** (1 - n).
    """
    error = standard_error(differences)
    centre = mean(differences)
    if error is None or centre is None:
        return None
    if max(abs(value) for value in differences) <= ROUNDING:
        return 1.0
    if error <= ROUNDING:
        return 2.0 ** (1 - len(differences))
    from scipy.stats import t

    return float(2.0 * t.sf(abs(centre) / error, len(differences) - 1))


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

    Replicates are drawn as pairs, so what both arms of a replicate share stays shared.

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

    values = np.asarray(differences, dtype=np.float64)
    generator = np.random.default_rng(seed)
    draws = generator.integers(len(values), size=(resamples, len(values)))
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(values[draws].mean(axis=1), [tail, 100.0 - tail])
    return float(low), float(high)


def gap_closed(
    loss_only: Sequence[float],
    method: Sequence[float],
    threshold_shift: Sequence[float],
) -> float | None:
    """Return the share of the threshold shift's gain that a method reaches.

    (loss_only - method) / (loss_only - threshold_shift) on mean costs: 0 is no better
    than loss-only fine-tuning, 1 as good as the shift, and more is possible.

    Args:
        loss_only: costs of loss-only fine-tuning by replicate, shape [n].
        method: costs of the method by the same replicates, shape [n].
        threshold_shift: costs of the best shift by the same replicates, shape [n].

    Returns:
        The share; None where the gain is lost in noise, that is no larger than twice
        the standard error of the paired differences, or n < 2.
    """
    gains = [a - b for a, b in zip(loss_only, threshold_shift, strict=True)]
    gain, error = mean(gains), standard_error(gains)
    if gain is None or error is None or gain <= max(2.0 * error, ROUNDING):
        return None
    reached = mean([a - b for a, b in zip(loss_only, method, strict=True)])
    return None if reached is None else reached / gain
