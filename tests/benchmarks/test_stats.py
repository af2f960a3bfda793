import math

import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchmarks import stats


def test_mean_and_sample_std_by_hand():
    assert stats.mean([1.0, 2.0, 6.0]) == 3.0
    assert stats.sample_std([1.0, 2.0, 6.0]) == pytest.approx(math.sqrt(14 / 2))
    assert stats.standard_error([1.0, 2.0, 6.0]) == pytest.approx(math.sqrt(7 / 3))
    assert stats.mean([]) is None
    assert stats.sample_std([1.0]) is None


def test_paired_p_value_equals_scipy():
    generator = np.random.default_rng(1)
    for n in (2, 3, 10):
        base, method = generator.normal(size=(2, n))
        expected = ttest_rel(base, method).pvalue
        found = stats.paired_p_value((base - method).tolist())
        assert found == pytest.approx(expected, rel=1e-10)


def test_paired_p_value_by_hand():
    # Differences 1, 2, 3: t = 2 / (1 / sqrt 3), 2 degrees of freedom;
    # there P(T > t) = 1/2 - t / (2 sqrt(2 + t^2)).
    t = 2 * math.sqrt(3)
    expected = 1 - t / math.sqrt(2 + t * t)
    assert stats.paired_p_value([1.0, 2.0, 3.0]) == pytest.approx(expected)


def test_paired_p_value_of_degenerate_differences():
    assert stats.paired_p_value([]) is None
    assert stats.paired_p_value([0.3]) is None
    assert stats.paired_p_value([0.0, 0.0, 0.0]) == 1.0
    assert stats.paired_p_value([0.3 - 0.2, 0.4 - 0.3, 0.5 - 0.4]) == 0.25
    assert stats.paired_p_value([-0.02] * 10) == 2.0**-9


def test_holm_by_hand():
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 -> made monotone 0.06.
    found = stats.holm([0.01, 0.04, None, 0.03, 0.005])
    assert found == [
        pytest.approx(0.03),
        pytest.approx(0.06),
        None,
        pytest.approx(0.06),
        pytest.approx(0.02),
    ]
    assert stats.holm([0.7, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []
    assert stats.holm([None]) == [None]


def test_bootstrap_interval():
    generator = np.random.default_rng(2)
    values = generator.normal(1.0, 0.1, size=40).tolist()
    low, high = stats.bootstrap_interval(values)
    half = 1.96 * np.std(values) / math.sqrt(40)
    assert low == pytest.approx(np.mean(values) - half, abs=0.2 * half)
    assert high == pytest.approx(np.mean(values) + half, abs=0.2 * half)
    assert stats.bootstrap_interval(values) == (low, high)
    assert stats.bootstrap_interval(values, seed=1) != (low, high)
    assert stats.bootstrap_interval([0.5]) is None
    assert stats.bootstrap_interval([0.5, 0.5]) == (0.5, 0.5)


def test_gap_closed_by_hand():
    loss_only, shift = [0.20, 0.22], [0.15, 0.16]
    # Mean gain 0.055 with standard error 0.005; the method gains 0.03 on average.
    method = [0.18, 0.18]
    assert stats.gap_closed(loss_only, method, shift) == pytest.approx(0.03 / 0.055)
    assert stats.gap_closed(loss_only, shift, shift) == pytest.approx(1.0)
    assert stats.gap_closed(loss_only, loss_only, shift) == pytest.approx(0.0)


def test_gap_closed_is_none_where_the_gain_is_noise():
    # Gains 0.03 and 0.01: mean 0.02 = 2 x standard error 0.01.
    assert stats.gap_closed([0.23, 0.21], [0.2, 0.2], [0.20, 0.20]) is None
    assert stats.gap_closed([0.2], [0.1], [0.1]) is None
    assert stats.gap_closed([0.2, 0.3], [0.2, 0.3], [0.2, 0.3]) is None
    assert stats.gap_closed([0.2, 0.3], [0.2, 0.3], [0.3, 0.4]) is None
    with pytest.raises(ValueError, match="shorter"):
        stats.gap_closed([0.2, 0.3], [0.2, 0.3], [0.2])
