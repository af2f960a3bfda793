"""What `finetune` says by default: evidence, warnings, a figure, a notebook's form."""

import math
import random
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from metricopt import ConfigError, FinetuneOptions, MetricOptOutputs, tune
from metricopt.on_outputs.cross_fitting import CrossFitting
from metricopt.reading.splits import doubts_of_absence, doubts_of_decisions
from tests.metricopt.digits_network import pretrained
from tests.metricopt.improving import OBSERVE, TEST, found_by_default, improve, macro_f1
from tests.metricopt.unfair_scores import ALIKE, GIVEN, LABELS, SCORES, gap

DEFAULT = FinetuneOptions(queries=20, progress=False)
WARNED = FinetuneOptions(queries=6, higher_is_better=True, progress=False)
"""Warnings do not need a search that ends."""


@pytest.fixture(scope="module")
def found():
    return found_by_default(20)


def test_the_default_needs_a_dozen_queries(found):
    assert found.method == "metricopt-outputs"
    assert found.spent.queries <= 20
    model = found.adapter.network
    before = macro_f1(model, TEST)
    with found.adapter.attach(found.phi):
        after = macro_f1(model, TEST)
    assert after > before + 0.05
    assert found.expected.low - 0.05 < after - before < found.expected.high + 0.05
    text = found.summary()
    assert "The metric is identified as a function of the decisions" in text
    assert f"better by {found.expected.value:.4g} (95 % interval" in text
    assert not found.warnings


def test_the_default_is_the_method_of_that_name(found):
    named = improve(pretrained(1), replace(DEFAULT, method="metricopt-outputs"))
    assert torch.equal(named.phi, found.phi)
    assert torch.equal(named.values, found.values)
    assert named.spent.queries == found.spent.queries < DEFAULT.queries
    without_seconds = [
        re.sub(r" in \S+ s ", " ", one.summary()) for one in (named, found)
    ]
    assert without_seconds[0] == without_seconds[1]


def test_a_method_with_settings_of_its_own_ends_as_they_say(found):
    # The last query confirms what was cross-fitted, whatever that is.
    brief = CrossFitting(steps=10, samples=10)
    own = replace(DEFAULT, method=MetricOptOutputs(cross_fitting=brief))
    whole = improve(pretrained(1), own)
    assert found.spent.queries < whole.spent.queries == DEFAULT.queries


def test_confusions_are_those_before_and_after(found):
    before, after = found.confusion
    assert before.sum() == after.sum() == len(OBSERVE[1])
    predicted = found.adapter.network(OBSERVE[0]).argmax(1)
    assert (predicted == OBSERVE[1]).sum() == before.trace()


def test_there_is_a_figure_and_a_form_for_notebooks(found):
    queries, trials, confusion = found.plot().axes[:3]
    assert len(queries.lines[0].get_xdata()) == len(found.values)
    assert found.values[0] == pytest.approx(found.metric_before)
    assert found.values[-1] == pytest.approx(found.metric_proposed)
    assert torch.isfinite(found.values).all()
    assert len(trials.lines) == 1 + len(found.evidence.trials)
    assert confusion.images
    page = found._repr_html_()
    assert page.startswith("<p>f1_score on the observe split") and "<img" in page


def test_untouched_networks_are_said_to_be(model):
    options = FinetuneOptions(queries=20, higher_is_better=True, progress=False)
    found = improve(model, options, metric=lambda outputs, targets: 0.5)
    assert not found.phi.any()
    assert "The metric was the same at all" in found.summary()
    assert found.expected is None
    assert len(found.plot().axes) >= 1


CHANCE = random.Random(0)


def right(outputs, targets):
    return (outputs.argmax(1) == targets).double().mean().item()


def noisy(outputs, targets):
    return min(1, max(0, right(outputs, targets) + CHANCE.uniform(-0.02, 0.02)))


def first_half(outputs, targets):
    half = len(targets) // 2
    return right(outputs[:half], targets[:half])


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (noisy, "noisy is noisy: the same outputs scored from"),
        (first_half, "first_half depends on the order of the examples"),
    ],
)
def test_metrics_of_chance_or_of_the_order_are_noticed(model, metric, text):
    (warning,) = improve(model, WARNED, metric=metric).warnings
    assert text in warning


@pytest.mark.parametrize("seed", range(2))
def test_chance_does_not_make_the_untouched_network_any_better(model, seed):
    CHANCE.seed(seed)
    quick = replace(WARNED, queries=20, method="loss-only", steps=4)
    found = improve(model, quick, metric=noisy)
    if not found.phi.any():
        assert found.metric_after == found.metric_proposed == found.metric_before
    found = improve(model, WARNED, metric=noisy)  # too few queries for any evidence
    assert not found.phi.any()
    assert found.metric_after == found.metric_proposed == found.metric_before


@pytest.mark.parametrize("queries", [16, 28])
def test_no_small_budget_is_spent_without_the_check_that_decides(model, queries):
    """Of a metric that no statistics explain."""

    def rough(outputs, targets):
        share = right(outputs, targets)
        if share in (0, 1):  # inverted or perfect ones
            return share
        return 0.5 + 0.4 * math.sin(1e4 * outputs.double().sum().item())

    options = replace(WARNED, queries=queries, low=0, high=1)
    observe = [part[:100] for part in OBSERVE]
    found = improve(model, options, observe=observe, metric=rough)
    assert found.spent.queries <= queries
    told = r"parts of the observe split it gains|gain on new data|No query was better"
    assert re.search(rf"{told}|that should confirm it gained", found.evidence.reason)


def test_no_harm_needs_queries_of_its_own(model):
    options = FinetuneOptions("cma-es", queries=15, progress=False)
    with pytest.raises(ConfigError, match="no_harm takes 12 queries and leaves none"):
        improve(model, options)
    states = torch.get_rng_state(), np.random.get_state()[1].copy()
    found = improve(model, FinetuneOptions("guided-cma", queries=30, progress=False))
    assert found.evidence is not None
    assert found.method == "guided-cma"
    # Random states are as before.
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()


def test_cheap_methods_are_checked_on_parts(model):
    options = FinetuneOptions("loss-only", queries=30, steps=4, progress=False)
    found = improve(model, options)
    assert "5 parts of the observe split" in found.summary()
    assert found.spent.queries == 3 + 1 + 10  # framing, phi = 0, parts


def test_a_class_without_examples_is_noticed(model):
    kept = OBSERVE[1] != 3
    observe = [part[kept] for part in OBSERVE]
    options = FinetuneOptions(queries=6, progress=False)
    (warning,) = improve(model, options, observe=observe).warnings
    assert "no example of class 3: what becomes of such examples" in warning


def test_decisions_that_are_all_alike_are_noticed():
    found = tune(SCORES, LABELS, gap, queries=15, **GIVEN)
    assert set(found.predict(SCORES)) == {1}
    (warning,) = found.warnings
    assert warning.startswith(ALIKE)
    assert not tune(SCORES, LABELS, "f1", queries=12).warnings


COUNTED = {
    "alike": ([[5, 2], [1, 4]], [[0, 7], [0, 5]], "decided as class 1"),
    "before, too": ([[0, 7], [0, 5]], [[0, 7], [0, 5]], None),
    "one class": ([[0, 0], [1, 4]], [[0, 0], [0, 5]], "no example of class 0"),
    "two of three": (
        [[5, 1, 0], [1, 4, 0], [0, 0, 2]],
        [[0, 6, 0], [0, 5, 0], [0, 0, 2]],
        None,
    ),
}
"""Examples by label and decision, before and after, and what is said of them."""


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_said_of_decisions(name):
    before, after, said = COUNTED[name]
    counts = torch.tensor(before), torch.tensor(after)
    absent = doubts_of_absence(counts)
    doubts = absent + doubts_of_decisions(counts, torch.ones(1), ())
    assert (len(doubts) == 1 and said in doubts[0]) if said else not doubts
    assert absent == [each for each in doubts if "no example" in each]
    # Neither the untouched network nor a bound is blamed.
    assert not doubts_of_decisions(counts, torch.zeros(1), ())
    assert not doubts_of_decisions(counts, torch.ones(1), ("a bound",))


def test_few_examples_cost_few_queries(model):
    observe = [part[:40] for part in OBSERVE]
    found = improve(model, DEFAULT, observe=observe)
    assert found.spent.queries <= 6
    assert "40 examples is too small to cross-fit" in found.summary()


def test_what_is_promised_without_evidence_is_rarely_taken():
    """On networks that fit their data, most noise is refused."""
    gains = []
    for seed in range(4):
        network = pretrained(seed)
        few = [part[:100] for part in OBSERVE]
        before = macro_f1(network, TEST)
        found = improve(network, DEFAULT, observe=few)
        found.apply()
        gains.append(macro_f1(network, TEST) - before)
        found.remove()
    assert min(gains) > -0.01


def test_too_few_queries_are_refused_before_any(model):
    with pytest.raises(ConfigError, match="queries must be at least 4 to search with"):
        improve(model, FinetuneOptions(queries=3, progress=False))
