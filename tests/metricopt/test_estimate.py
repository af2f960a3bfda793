"""What is expected elsewhere of phi that was checked, its metric not identified."""

import math
import re
from dataclasses import replace

import pytest
import torch
from scipy.stats import t

from metricopt import FinetuneOptions, at_least
from metricopt.estimate import STUDENT, Estimate, SeenOnParts
from tests.metricopt.digits_network import pretrained
from tests.metricopt.improving import improve

ODD = FinetuneOptions(queries=40, higher_is_better=True, progress=False)


def odd(outputs, targets):
    """A metric that is no function of any statistic, but can be improved."""
    return torch.sin(6 * outputs).mean().item()


def first(fits, options, metric=odd):
    """The first network that a search does something with: processors differ."""
    every = (improve(pretrained(seed), options, metric=metric) for seed in range(1, 6))
    return next(filter(fits, every))


@pytest.fixture(scope="module")
def found():
    def on_parts(found):
        return found.phi.any() and found.evidence.seen is not None

    return first(on_parts, replace(ODD, method="portfolio"))


def test_what_parts_gained_is_expected_and_said_to_be_of_the_choice(found):
    assert found.phi.any()
    estimate, seen = found.expected, found.evidence.seen
    assert estimate.is_of_choice
    assert (found.evidence.gain, found.evidence.error) == (None, None)
    reason = found.evidence.reason
    gain, error = map(float, re.findall(r"gains (\S+) \(.* error (\S+)\);", reason)[0])
    assert estimate.value == pytest.approx(gain, rel=1e-3)
    assert estimate.high - estimate.value == pytest.approx(2.776 * error, rel=1e-3)
    assert estimate.low == pytest.approx(2 * estimate.value - estimate.high)
    assert seen.parts == 5
    (line,) = [each for each in found.summary().splitlines() if "On parts" in each]
    assert f"is better by {estimate.value:.4g} (95 % interval" in line
    assert line.endswith("have chosen phi, too: expect less on other data.")
    assert "level=1.96" not in found.summary()


def test_what_chance_may_have_gained_on_parts_is_said(found):
    said = "phi is moved although this interval holds 0."
    assert (said in found.summary()) == (found.expected.low <= 0)
    seen = replace(found.evidence.seen, error=found.evidence.seen.gain / 2)
    unsure = replace(found, evidence=replace(found.evidence, seen=seen))
    assert unsure.expected.low < 0 and said in unsure.summary()
    seen = replace(seen, error=seen.gain / 4)
    sure = replace(found, evidence=replace(found.evidence, seen=seen))
    assert sure.expected.low > 0 and said not in sure.summary()


def test_the_gain_is_about_what_the_whole_split_gained(found):
    gain = found.metric_after - found.metric_before
    assert found.expected.low < gain < found.expected.high


def test_nothing_is_expected_of_phi_that_was_turned_down(found):
    kept = replace(found, phi=torch.zeros_like(found.phi))
    assert kept.expected is None
    assert "judge it on other data" in kept.summary()


def test_nothing_is_expected_where_no_evidence_was_asked_for():
    options = replace(ODD, method="cma-es", no_harm=False, queries=8)
    found = first(lambda found: found.phi.any(), options)
    assert found.expected is None and found.evidence is None


def test_a_cost_with_bounds_in_it_is_no_estimate_of_the_objective():
    def positive(outputs, targets):
        return (outputs > -100).float().mean().item() + odd(outputs, targets) / 1e3

    bounds = (at_least(positive, 0.5),)
    options = replace(ODD, method="portfolio", constraints=bounds)
    parts = "On 5 parts of the observe split"
    found = first(lambda found: parts in found.evidence.reason, options)
    assert found.evidence.seen is None and found.expected is None


@pytest.mark.parametrize("parts", STUDENT)
def test_intervals_of_parts_are_those_of_student(parts):
    gains = torch.tensor([0.1, 0.3, 0.2, 0.5, 0.4], dtype=torch.float64)[:parts]
    error = gains.std().item() / math.sqrt(parts)
    seen = SeenOnParts(gains.mean().item(), error, parts).estimate(10.0)
    low, high = t.interval(0.95, parts - 1, gains.mean().item(), error)
    assert (seen.low, seen.high) == pytest.approx((10 * low, 10 * high), abs=0.01)


def test_an_estimate_of_new_examples_says_so():
    assert not Estimate(0.1, 0.0, 0.2).is_of_choice
