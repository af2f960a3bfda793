import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind, ttest_rel

from benchmarks.report import stats


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


def test_welch_equals_scipy():
    generator = np.random.default_rng(3)
    for n, m in ((2, 3), (3, 10), (10, 4)):
        base, method = generator.normal(size=n), generator.normal(0.5, 2.0, size=m)
        expected = ttest_ind(base, method, equal_var=False)
        p = stats.welch_p_value(base.tolist(), method.tolist())
        assert p == pytest.approx(expected.pvalue, rel=1e-10)
        found = stats.welch_interval(base.tolist(), method.tolist(), level=0.9)
        assert found == pytest.approx(tuple(expected.confidence_interval(0.9)))


def test_welch_of_degenerate_values():
    assert stats.welch_p_value([0.1], [0.1, 0.2]) is None
    assert stats.welch_interval([0.1, 0.2], []) is None
    assert stats.welch_error([0.1], [0.2]) is None
    assert stats.welch_p_value([0.3, 0.3], [0.1 + 0.2] * 3) == 1.0
    # Ten ways to deal out five values by two and three.
    assert stats.welch_p_value([0.3, 0.3], [0.1, 0.1, 0.1]) == 1 / 10
    assert stats.welch_p_value([0.3, 0.3], [0.1, 0.1]) == 2 / 6
    assert stats.welch_interval([0.3, 0.3], [0.1, 0.1]) == pytest.approx((0.2, 0.2))
    # One side without deviation leaves a one-sample t-test of the other.
    side = [0.1, 0.2, 0.4]
    expected = ttest_1samp(side, 0.3).pvalue
    assert stats.welch_p_value([0.3, 0.3], side) == pytest.approx(expected)


def test_compare_pairs_single_values_by_replicate():
    base = {0: [0.3], 2: [0.9], 1: [0.4], 3: [0.5]}
    found = stats.compare(base, {1: [0.1], 0: [0.2], 3: [0.3]})
    assert (found.base, found.method) == ((0.3, 0.4, 0.5), (0.2, 0.1, 0.3))
    assert found.paired
    assert found.differences == pytest.approx((0.1, 0.3, 0.2))
    assert found.gain == pytest.approx(0.2)
    assert found.error == pytest.approx(0.1 / math.sqrt(3))
    assert found.p_value == stats.paired_p_value(found.differences)
    assert found.interval == stats.bootstrap_interval(found.differences)


def test_compare_pairs_a_single_value_with_all():
    many = [0.3, 0.5, 0.4]
    found = stats.compare({0: [0.6]}, {0: many})
    assert found.paired
    assert found.differences == pytest.approx((0.3, 0.1, 0.2))
    assert found.p_value == pytest.approx(ttest_1samp(many, 0.6).pvalue)
    turned = stats.compare({0: many}, {0: [0.6]})
    assert turned.differences == pytest.approx((-0.3, -0.1, -0.2))
    assert stats.compare({0: [0.6]}, {0: [0.4]}).p_value is None


def test_compare_does_not_pair_several_values():
    base, method = [0.3, 0.5, 0.4], [0.2, 0.3]
    found = stats.compare({0: base}, {0: method})
    assert not found.paired
    assert found.gain == pytest.approx(0.15)
    assert found.differences == pytest.approx((0.2, 0.1))
    expected = ttest_ind(base, method, equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval()))
    assert found.error == pytest.approx(math.hypot(0.1 / math.sqrt(3), 0.05))
    # One replicate that cannot be paired leaves none that is.
    found = stats.compare({0: base, 1: [0.9]}, {0: method, 1: [0.8]})
    assert (found.base, found.method) == ((*base, 0.9), (*method, 0.8))
    assert not found.paired


def test_compare_needs_a_shared_replicate():
    assert stats.compare({0: [0.1]}, {1: [0.1]}) is None
    assert stats.compare({}, {}) is None


def test_adjust_leaves_out_what_is_not_tested():
    clear = stats.compare({0: [0.3], 1: [0.4]}, {0: [0.1], 1: [0.2]})
    vague = stats.compare({0: [0.3], 1: [0.4]}, {0: [0.1], 1: [0.3]})
    single = stats.compare({0: [0.3]}, {0: [0.1]})
    found = stats.adjust([vague, None, single, clear])
    expected = stats.holm([vague.p_value, None, None, clear.p_value])
    assert found[1] is None
    assert [one and one.p_holm for one in found] == expected
    assert found[3].differences == clear.differences


def _share(loss_only, method, shift):
    base = dict(enumerate(zip(loss_only)))
    against = [
        stats.compare(base, dict(enumerate(zip(arm)))) for arm in (shift, method)
    ]
    return stats.gap_closed(*against)


def test_gap_closed_by_hand():
    loss_only, shift = [0.20, 0.22], [0.15, 0.16]
    # Mean gain 0.055 with standard error 0.005; the method gains 0.03 on average.
    method = [0.18, 0.18]
    assert _share(loss_only, method, shift) == pytest.approx(0.03 / 0.055)
    assert _share(loss_only, shift, shift) == pytest.approx(1.0)
    assert _share(loss_only, loss_only, shift) == pytest.approx(0.0)


def test_gap_closed_is_none_where_the_gain_is_noise():
    # Gains 0.03 and 0.01: mean 0.02 = 2 x standard error 0.01.
    assert _share([0.23, 0.21], [0.2, 0.2], [0.20, 0.20]) is None
    assert _share([0.2], [0.1], [0.1]) is None
    assert _share([0.2, 0.3], [0.2, 0.3], [0.2, 0.3]) is None
    assert _share([0.2, 0.3], [0.2, 0.3], [0.3, 0.4]) is None


def test_gap_closed_of_arms_that_are_not_paired():
    loss_only = {0: [0.20, 0.22, 0.21]}
    shift = stats.compare(loss_only, {0: [0.16]})
    method = stats.compare(loss_only, {0: [0.17, 0.19]})
    assert stats.gap_closed(shift, method) == pytest.approx(0.03 / 0.05)
    # A gain of 0.21 - 0.195 beside a standard error of 0.0104.
    noise = stats.compare(loss_only, {0: [0.185, 0.205]})
    assert stats.gap_closed(noise, method) is None
