"""What `finetune` says by default: evidence, warnings, a figure, a notebook's form."""

import random

import pytest
import torch
from torch import nn

from metricopt import ConfigError, FinetuneOptions
from tests.metricopt.digits_network import pretrained
from tests.metricopt.improving import OBSERVE, TEST, TRAIN, improve, macro_f1

DEFAULT = FinetuneOptions(queries=20, progress=False)


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
    assert found.expected.low - 0.05 < after < found.expected.high + 0.05


def test_the_summary_says_how_it_was_found(found) -> None:
    text = found.summary()
    assert "The metric is identified as a function of the decisions" in text
    assert f"is expected to be {found.expected.value:.4g} (95 % interval" in text
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

    options = FinetuneOptions(queries=20, higher_is_better=True, progress=False)
    (warning,) = improve(model, options, metric=noisy).warnings
    assert "noisy is noisy: the same outputs scored from" in warning


def test_a_metric_of_the_order_is_noticed(model: nn.Module) -> None:
    def first_half(outputs, targets) -> float:
        half = len(targets) // 2
        return (outputs[:half].argmax(1) == targets[:half]).double().mean().item()

    options = FinetuneOptions(queries=20, higher_is_better=True, progress=False)
    (warning,) = improve(model, options, metric=first_half).warnings
    assert "first_half depends on the order of the examples" in warning


def test_no_harm_needs_queries_of_its_own(model: nn.Module) -> None:
    options = FinetuneOptions("cma-es", queries=15, progress=False)
    with pytest.raises(ConfigError, match="no_harm takes 12 of the queries"):
        improve(model, options)
    found = improve(model, FinetuneOptions("cma-es", queries=30, progress=False))
    assert found.evidence is not None
    assert found.method == "cma-es"


def test_values_are_those_of_all_queries(found) -> None:
    assert found.values[0] == pytest.approx(found.metric_before)
    assert found.values[-1] == pytest.approx(found.metric_proposed)
    assert torch.isfinite(found.values).all()
