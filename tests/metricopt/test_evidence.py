"""What `finetune` says by default: evidence, warnings, a figure, a notebook's form."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from metricopt import ConfigError, FinetuneOptions, MetricOptOutputs
from tests.metricopt.digits_network import pretrained
from tests.metricopt.improving import OBSERVE, TEST, TRAIN, improve, macro_f1

DEFAULT = FinetuneOptions(queries=20, progress=False)
WARNED = FinetuneOptions(queries=6, higher_is_better=True, progress=False)
"""Warnings do not need a search that ends."""


@pytest.fixture(scope="module")
def found():
    return improve(pretrained(TRAIN, seed=1), DEFAULT)


def test_the_default_needs_a_dozen_queries(found) -> None:
    assert found.method == "metricopt-outputs"
    assert found.spent.queries <= 20
    model = found.adapter.network
    before = macro_f1(model, TEST)
    found.apply()
    after = macro_f1(model, TEST)
    found.remove()
    assert after > before + 0.05
    assert found.expected.low - 0.05 < after - before < found.expected.high + 0.05


def test_the_default_is_the_method_of_that_name(found) -> None:
    named = improve(
        pretrained(TRAIN, seed=1), replace(DEFAULT, method="metricopt-outputs")
    )
    assert torch.equal(named.phi, found.phi)
    assert torch.equal(named.values, found.values)
    assert named.spent.queries == found.spent.queries < DEFAULT.queries
    without_seconds = [
        re.sub(r" in \S+ s ", " ", one.summary()) for one in (named, found)
    ]
    assert without_seconds[0] == without_seconds[1]


def test_a_method_with_settings_of_its_own_ends_as_they_say(found) -> None:
    own = replace(DEFAULT, method=MetricOptOutputs())
    whole = improve(pretrained(TRAIN, seed=1), own)
    assert found.spent.queries < whole.spent.queries == DEFAULT.queries


def test_the_summary_says_how_it_was_found(found) -> None:
    text = found.summary()
    assert "The metric is identified as a function of the decisions" in text
    assert f"better by {found.expected.value:.4g} (95 % interval" in text
    assert not found.warnings


def test_confusions_are_those_before_and_after(found) -> None:
    before, after = found.confusion
    assert before.sum() == after.sum() == len(OBSERVE[1])
    predicted = found.adapter.network(OBSERVE[0]).argmax(1)
    assert (predicted == OBSERVE[1]).sum() == before.trace()


def test_there_is_a_figure_and_a_form_for_notebooks(found) -> None:
    queries, trials, confusion = found.plot().axes[:3]
    assert len(queries.lines[0].get_xdata()) == len(found.values)
    assert len(trials.lines) == 1 + len(found.evidence.trials)
    assert confusion.images
    page = found._repr_html_()
    assert page.startswith("<p>f1_score on the observe split") and "<img" in page


def test_untouched_networks_are_said_to_be(model: nn.Module) -> None:
    def constant(outputs, targets) -> float:
        return 0.5

    options = FinetuneOptions(queries=20, higher_is_better=True, progress=False)
    found = improve(model, options, metric=constant)
    assert not found.phi.any()
    assert "The metric was the same at all" in found.summary()
    assert found.expected is None
    assert len(found.plot().axes) >= 1


def test_a_noisy_metric_is_noticed(model: nn.Module) -> None:
    chance = random.Random(0)

    def noisy(outputs, targets) -> float:
        right = (outputs.argmax(1) == targets).double().mean().item()
        return min(1, max(0, right + chance.uniform(-0.02, 0.02)))

    (warning,) = improve(model, WARNED, metric=noisy).warnings
    assert "noisy is noisy: the same outputs scored from" in warning


def test_a_metric_of_the_order_is_noticed(model: nn.Module) -> None:
    def first_half(outputs, targets) -> float:
        half = len(targets) // 2
        return (outputs[:half].argmax(1) == targets[:half]).double().mean().item()

    (warning,) = improve(model, WARNED, metric=first_half).warnings
    assert "first_half depends on the order of the examples" in warning


def test_no_harm_needs_queries_of_its_own(model: nn.Module) -> None:
    options = FinetuneOptions("cma-es", queries=15, progress=False)
    with pytest.raises(ConfigError, match="no_harm takes 12 queries and leaves none"):
        improve(model, options)
    found = improve(model, FinetuneOptions("cma-es", queries=30, progress=False))
    assert found.evidence is not None
    assert found.method == "cma-es"


def test_values_are_those_of_all_queries(found) -> None:
    assert found.values[0] == pytest.approx(found.metric_before)
    assert found.values[-1] == pytest.approx(found.metric_proposed)
    assert torch.isfinite(found.values).all()


def test_cheap_methods_are_checked_on_parts(model: nn.Module) -> None:
    found = improve(model, FinetuneOptions("loss-only", queries=30, progress=False))
    assert "5 parts of the observe split" in found.summary()
    assert found.spent.queries == 3 + 1 + 10  # framing, phi = 0, parts


def test_a_class_without_examples_is_noticed(model: nn.Module) -> None:
    kept = OBSERVE[1] != 3
    observe = [part[kept] for part in OBSERVE]
    options = FinetuneOptions(queries=6, progress=False)
    (warning,) = improve(model, options, observe=observe).warnings
    assert "no example of class 3: what becomes of such examples" in warning


def test_few_examples_cost_few_queries(model: nn.Module) -> None:
    observe = [part[:40] for part in OBSERVE]
    found = improve(model, DEFAULT, observe=observe)
    assert found.spent.queries <= 6
    assert "40 examples is too small to cross-fit" in found.summary()


def test_what_is_promised_without_evidence_is_rarely_taken() -> None:
    """On networks that fit their data, most noise is refused."""
    gains = []
    for seed in range(4):
        network = pretrained(TRAIN, seed=seed)
        few = [part[:100] for part in OBSERVE]
        before = macro_f1(network, TEST)
        found = improve(network, DEFAULT, observe=few)
        found.apply()
        gains.append(macro_f1(network, TEST) - before)
        found.remove()
    assert min(gains) > -0.01


def test_random_states_are_as_before(model: nn.Module) -> None:
    states = torch.get_rng_state(), np.random.get_state()[1].copy()
    improve(model, FinetuneOptions("guided-cma", queries=30, progress=False))
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"queries": "50"}, "queries must be a whole number, got '50'"),
        ({"queries": 50.5}, "queries must be a whole number, got 50.5"),
        ({"steps": 2.5}, "steps must be a whole number, got 2.5"),
        ({"size": True}, "size must be a whole number, got True"),
        ({"no_harm": "no"}, "no_harm must be True or False, got 'no'"),
    ],
)
def test_options_of_another_type_are_refused(settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        FinetuneOptions(**settings)


def test_too_few_queries_are_refused_before_any(model: nn.Module) -> None:
    with pytest.raises(ConfigError, match="queries must be at least 4 to search with"):
        improve(model, FinetuneOptions(queries=3, progress=False))
