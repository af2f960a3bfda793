import math

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp, ttest_ind, ttest_rel

from benchmarks.report import stats


def numbered(values):
    return dict(enumerate(values))


def paired(base, method, **more):
    return stats.compare(numbered(base), numbered(method), paired=True, **more)


def sides(base, method):
    return stats.compare(numbered(base), numbered(method), paired=False)


def test_mean_and_sample_std_by_hand():
    assert stats.mean([1.0, 2.0, 6.0]) == 3.0
    assert stats.sample_std([1.0, 2.0, 6.0]) == pytest.approx(math.sqrt(14 / 2))
    assert stats.mean([]) is None
    assert stats.sample_std([1.0]) is None


def test_pairs_equal_scipy():
    generator = np.random.default_rng(1)
    for n in (2, 3, 10):
        base, method = generator.normal(size=(2, n)).tolist()
        expected, found = ttest_rel(base, method), paired(base, method)
        assert found.values == (n, n)
        assert found.base == pytest.approx(np.mean(base))
        assert found.gain == pytest.approx(np.mean(base) - np.mean(method))
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-10)
        assert found.interval == pytest.approx(tuple(expected.confidence_interval()))


def test_p_of_pairs_by_hand():
    # Differences 1, 2, 3: t = 2 / (1 / sqrt 3), 2 degrees of freedom;
    # there P(T > t) = 1/2 - t / (2 sqrt(2 + t^2)).
    t = 2 * math.sqrt(3)
    expected = 1 - t / math.sqrt(2 + t * t)
    assert paired([1.0, 2.0, 3.0], [0.0] * 3).p_value == pytest.approx(expected)
    # Overlapping splits widen the error: deviation 1; n_test / n_train = 2 / 3.
    found = paired([1.0, 2.0, 3.0], [0.0] * 3, test_per_train=2 / 3)
    assert found.error == pytest.approx(math.sqrt(1 / 3 + 2 / 3))
    # t = 2 with 2 degrees of freedom.
    assert found.p_value == pytest.approx(1 - 2 / math.sqrt(2 + 4))
    half = student.ppf(0.975, 2)
    assert found.interval == pytest.approx((2 - half, 2 + half))


def test_corrected_tests_hold_their_level_on_overlapping_splits():
    """Means over random test parts of one sample: the plain test cries wolf."""
    generator, trials = np.random.default_rng(4), 300
    plain = corrected = 0
    for _ in range(trials):
        sample = generator.normal(size=90)
        scores = [sample[generator.permutation(90)[:30]].mean() for _ in range(10)]
        zero = [0.0] * len(scores)
        plain += paired(scores, zero).p_value < stats.LEVEL
        corrected += paired(scores, zero, test_per_train=0.5).p_value < stats.LEVEL
    assert plain / trials > 0.2
    assert corrected / trials < 0.1


def test_only_shared_numbers_are_paired():
    found = stats.compare({0: 0.3, 2: 0.9, 1: 0.4}, {1: 0.1, 0: 0.2}, paired=True)
    assert found.values == (2, 2)
    assert found.gain == pytest.approx(0.2)
    assert stats.compare({0: 0.1}, {1: 0.1}, paired=True) is None
    assert stats.compare({}, {}, paired=True) is None


def test_pairs_without_spread_have_the_exact_p():
    assert paired([0.3], [0.1]).p_value is None
    assert paired([0.3], [0.1]).interval is None
    assert paired([0.3] * 3, [0.1 + 0.2] * 3).p_value == 1.0
    assert paired([0.3, 0.4, 0.5], [0.2, 0.3, 0.4]).p_value == 0.25
    found = paired([0.5] * 10, [0.52] * 10)
    assert found.p_value == 2.0**-9
    assert found.interval == pytest.approx((-0.02, -0.02))


def test_a_single_value_is_held_against_all():
    many = [0.3, 0.5, 0.4]
    found = sides([0.6], many)
    assert found.gain == pytest.approx(0.2)
    assert found.p_value == pytest.approx(ttest_1samp(many, 0.6).pvalue)
    turned = sides(many, [0.6])
    assert turned.gain == pytest.approx(-0.2)
    assert turned.p_value == pytest.approx(found.p_value)
    alone = sides([0.6], [0.4])
    assert (alone.gain, alone.p_value) == (pytest.approx(0.2), None)
    assert sides([], [0.4]) is None


def test_sides_equal_scipy():
    generator = np.random.default_rng(3)
    for n, m in ((2, 3), (3, 10), (10, 4)):
        base = generator.normal(size=n).tolist()
        method = generator.normal(0.5, 2.0, size=m).tolist()
        expected = ttest_ind(base, method, equal_var=False)
        found = sides(base, method)
        assert found.values == (n, m)
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-10)
        assert found.interval == pytest.approx(tuple(expected.confidence_interval()))


def test_sides_without_spread():
    assert sides([0.3, 0.3], [0.1 + 0.2] * 3).p_value == 1.0
    # Ten ways to deal out five values by two and three, either side first.
    assert sides([0.3, 0.3], [0.1, 0.1, 0.1]).p_value == 2 / 10
    assert sides([0.3, 0.3], [0.1, 0.1]).p_value == 2 / 6
    assert sides([0.3, 0.3], [0.1, 0.1]).interval == pytest.approx((0.2, 0.2))
    # One side without deviation leaves a one-sample t-test of the other.
    side = [0.1, 0.2, 0.4]
    expected = ttest_1samp(side, 0.3).pvalue
    assert sides([0.3, 0.3], side).p_value == pytest.approx(expected)


def test_equality_is_two_one_sided_tests():
    base, method = [0.51, 0.49, 0.50, 0.52], [0.50, 0.49, 0.51, 0.50]
    differences = np.subtract(base, method)
    found = paired(base, method)
    one_sided = [
        ttest_1samp(differences, end, alternative=side).pvalue
        for end, side in ((-0.03, "greater"), (0.03, "less"))
    ]
    assert found.p_equal(0.03) == pytest.approx(max(one_sided))
    # It is below 5 % just where the 90 % interval lies within the margin.
    ends = ttest_1samp(differences, 0).confidence_interval(0.9)
    assert found.p_equal(max(map(abs, ends))) == pytest.approx(0.05)
    assert found.p_equal(abs(found.gain) / 2) > 0.5
    assert paired([0.3], [0.3]).p_equal(0.1) is None
    # Without spread:
    assert paired([0.3] * 5, [0.3] * 5).p_equal(0.01) == 2.0**-5
    assert paired([0.3] * 5, [0.2] * 5).p_equal(0.01) == 1.0


def test_the_smallest_p_is_that_of_the_greatest_gain():
    found = paired([0.5, 0.9], [0.2, 0.3])
    # Differences .3 and .6: error .15 and 1 degree of freedom.
    assert found.least_p(1.0) == pytest.approx(2 * student.sf(1 / 0.15, 1))
    assert paired([0.5], [0.1]).least_p(1.0) is None
    assert paired([0.5, 0.6], [0.4, 0.5]).least_p(1.0) == 0.5


def test_holm_by_hand():
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 -> made monotone 0.06.
    found = stats.holm([0.01, 0.04, None, 0.03, 0.005])
    assert found.pop(2) is None
    assert found == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.7, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []
    assert stats.holm([None]) == [None]


def test_adjust_leaves_out_what_is_not_tested():
    clear, vague = paired([0.3, 0.4], [0.1, 0.2]), paired([0.3, 0.4], [0.1, 0.3])
    single = paired([0.3], [0.1])
    found = stats.adjust([vague, None, single, clear], [0.5] * 4)
    expected = stats.holm([vague.p_value, None, None, clear.p_value])
    assert found[1] is None
    assert [one and one.p_holm for one in found] == expected
    equal = stats.holm([vague.p_equal(0.5), None, None, clear.p_equal(0.5)])
    assert [one and one.p_equal_holm for one in found] == equal
    assert found[3].gain == clear.gain


def _share(loss_only, method, shift):
    return stats.gap_closed(*(paired(loss_only, entry) for entry in (shift, method)))


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
    loss_only = [0.20, 0.22, 0.21]
    shift, method = sides(loss_only, [0.16]), sides(loss_only, [0.17, 0.19])
    assert stats.gap_closed(shift, method) == pytest.approx(0.03 / 0.05)
    # A gain of 0.21 - 0.195 beside a standard error of 0.0116.
    noise = sides(loss_only, [0.185, 0.205])
    assert stats.gap_closed(noise, method) is None
