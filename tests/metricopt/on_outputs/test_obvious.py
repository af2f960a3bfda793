"""How the obvious did: what is said of it is what the metric says of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, mean_absolute_error

import metricopt
from metricopt import FinetuneOptions, tune
from metricopt.methods.attempts import Obvious
from metricopt.methods.guided_cma import GuidedCMA
from metricopt.methods.lines_of_phi import shift_lines
from metricopt.methods.result import Budget
from metricopt.reading.outputs import Standard
from tests.metricopt.digits_network import pretrained
from tests.metricopt.drawn import seeded
from tests.metricopt.improving import OBSERVE, found_by_default, improve, macro_f1
from tests.metricopt.quadratic_task import QuadraticTask
from tests.metricopt.test_tune import QUICK, rare_digits, rare_tumours, tuned_digits


@pytest.fixture(scope="module")
def found():
    return found_by_default(20)


def by_name(found):
    return {each.name: each for each in found.obvious}


def test_predictions_of_the_obvious_come_true(found):
    assert set(by_name(found)) == {"logit adjustment", "thresholds"}
    for attempt, said in zip(found.attempts, found.obvious, strict=True):
        assert said.observed == said.taken  # a query has confirmed what was taken
        with found.adapter.attach(attempt.phi):
            value = macro_f1(found.adapter.network, OBSERVE)
        close = 1e-6 if said.observed else 0.01
        assert said.value == pytest.approx(value, abs=close)
    assert by_name(found)["thresholds"].value > found.metric_before + 0.1


def test_what_was_taken_is_said_and_the_summary_has_a_line(found):
    said = by_name(found)
    assert said["thresholds"].taken and not said["logit adjustment"].taken
    one, two = (each.value for each in found.obvious)
    assert (
        f"Obvious: logit adjustment {one:.4g} (predicted), thresholds {two:.4g} "
        f"(observed, taken); chosen {found.metric_after:.4g}." in found.summary()
    )


def test_logit_adjustment_is_the_best_of_its_powers():
    (logits, labels), _ = rare_digits()
    found = tuned_digits()
    share = np.bincount(labels) / len(labels)
    said = by_name(found)["logit adjustment"]
    plain = [
        f1_score(labels, (logits - power * np.log(share)).argmax(1), average="macro")
        for power in (0.0, 0.5, 1.0, 1.5)
    ]
    # Ours are of calibrated outputs, so they are no worse.
    assert said.value > max(plain) - 0.01
    assert found.obvious == found.found.obvious


def test_what_was_queried_is_observed():
    outputs, targets = rare_tumours()
    found = tune(outputs, targets, "f1", **QUICK)
    for said in by_name(found).values():
        assert said.observed
        assert (found.values - said.value).abs().min() < 1e-9
    assert by_name(found)["thresholds"].value == found.metric_after


def test_one_shift_of_predicted_values_is_as_good_as_the_best_of_twenty():
    inputs, targets = load_diabetes(return_X_y=True)
    outputs = Ridge().fit(inputs[:200], targets[:200]).predict(inputs[200:]) + 20
    truth = targets[200:]
    found = tune(outputs, truth, "neg_mean_absolute_error", **QUICK)
    said = by_name(found)["one shift"]
    (shift,) = (each.phi for each in found.found.attempts)
    pair = (torch.tensor(each)[:, None] for each in (outputs, truth))
    (unit,) = Standard.of(*pair).unit
    moved = outputs + (shift[0] * unit).item()
    assert shift[1] == 0
    assert said.value == pytest.approx(-mean_absolute_error(truth, moved), rel=0.01)
    assert said.value > found.metric_before


def test_what_no_statistic_explains_has_the_shifts_that_were_observed():
    inputs, targets = load_diabetes(return_X_y=True)
    outputs = Ridge().fit(inputs[:200], targets[:200]).predict(inputs[200:])

    def odd(outputs, targets):
        return torch.sin(outputs).mean().item()

    options = {"higher_is_better": True, "queries": 40, "progress": False}
    found = tune(torch.tensor(outputs), torch.tensor(targets[200:]), odd, **options)
    (said,) = found.obvious
    assert (said.name, said.observed) == ("one shift", True)
    assert (found.values - said.value).abs().min() < 1e-9


def test_lines_of_guided_cma_are_shifts():
    task, size = QuadraticTask(), QuadraticTask().size
    lines = shift_lines(torch.randn(50, 1, generator=seeded()), slice(0, 1), size)
    found = GuidedCMA(lines=lines).run(task, Budget(30, 0), seeded(), rows=2)
    for (attempt,), row in zip(found.obvious, range(2), strict=True):
        assert attempt.observed and attempt.phi[0] != 0 and not attempt.phi[1:].any()
        assert task.cost(attempt.phi[None]).item() == pytest.approx(attempt.cost)
        assert found.checkpoints[-1].cost[row] <= attempt.cost


def test_zero_takes_nothing_obvious(found):
    none = replace(found, phi=torch.zeros_like(found.phi))
    assert not any(each.taken for each in none.obvious)
    assert "taken" not in none.summary()


@pytest.mark.parametrize("method", ["cma-es", GuidedCMA(), "portfolio"])
def test_methods_that_try_nothing_obvious_say_nothing(method):
    options = FinetuneOptions(
        queries=8, method=method, no_harm=False, higher_is_better=True, progress=False
    )
    found = improve(pretrained(1), options)
    assert found.obvious == ()
    assert "Obvious" not in found.summary()


def test_bounds_leave_the_obvious_out():
    outputs, targets = rare_tumours()
    bounds = [metricopt.at_least("precision", 0.5)]
    found = tune(outputs, targets, "f1", constraints=bounds, **QUICK)
    assert found.obvious == ()


def test_it_is_described_with_how_it_is_known():
    said = Obvious("temperature", 0.12345, observed=True, taken=False)
    assert said.describe() == "temperature 0.1235 (observed)"
