"""Offsets by Optuna: the same as a study of its own finds, quietly and repeatably."""

import numpy as np
import optuna
import pytest
import torch
from scipy.special import log_softmax
from sklearn.metrics import f1_score

from baselines.post_hoc.optuna_offsets import OffsetTrials, study_offsets
from metricopt.errors import BudgetExceededError, ShapeError
from metricopt.methods.evolution import draw_seeds
from metricopt.reading.callables import make_metric
from tests.baselines.post_hoc.calibrated import LinearMetric, searched
from tests.baselines.post_hoc.fitted import rare_digits, tumours


def study(outputs, targets, metric, *, trials=30, reach=2.0, seed=0, limit=None):
    return searched(
        study_offsets,
        outputs,
        targets,
        metric,
        limit=limit,
        search=OffsetTrials(reach, trials),
        generator=torch.Generator().manual_seed(seed),
    )


def test_equals_a_study_that_a_user_would_write():
    outputs, targets = rare_digits()
    log_p, y = log_softmax(outputs.numpy(), 1), targets.numpy()

    def macro_f(trial):
        offsets = [0.0, *(trial.suggest_float(f"{k}", -2.0, 2.0) for k in range(1, 4))]
        return 1 - f1_score(y, (log_p + offsets).argmax(1), average="macro")

    (seed,) = draw_seeds(1, torch.Generator().manual_seed(0))
    theirs = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    theirs.enqueue_trial({f"{k}": 0.0 for k in range(1, 4)})
    theirs.optimize(macro_f, n_trials=30)
    found = study(outputs, targets, make_metric("f-macro"))
    assert found.queries == 30
    assert found.best.value == pytest.approx(1 - theirs.best_value)
    assert found.best.value > found.trace[0].value + 0.01
    assert found.best.queries == theirs.best_trial.number + 1
    expected = [0.0, *theirs.best_params.values()]
    assert found.best.offsets.tolist() == pytest.approx(expected)
    shifted = found.best.shift(outputs).numpy().argmax(1)
    assert np.array_equal(shifted, (log_p + expected).argmax(1))


@pytest.mark.parametrize("trials", [1, 12])
def test_every_trial_is_a_query_and_zero_offsets_are_the_first(trials):
    outputs, targets = rare_digits()
    metric = LinearMetric([1.0, 2.0, 5.0, 9.0])
    found = study(outputs, targets, metric, trials=trials)
    assert found.queries == metric.calls == trials
    assert not found.trace[0].offsets.any()
    assert found.trace[0].value == metric.value(outputs, targets)
    values = [each.value for each in found.trace]
    assert values == sorted(set(values))
    assert (len(values) > 1) == (trials > 1)
    assert bool((found.best.offsets.abs() <= 2).all())
    assert all(each.offsets[0] == 0 for each in found.trace)


def test_one_logit_counts_as_two_classes_and_the_generator_decides():
    outputs, targets = tumours()
    both = torch.cat([torch.zeros_like(outputs), outputs], 1)
    metric = make_metric("f1")
    found = study(outputs, targets, metric)
    again = study(both, targets, metric)
    other = study(outputs, targets, metric, seed=1)
    assert found.best.offsets.shape == (2,)
    assert found.best.value == again.best.value > found.trace[0].value
    assert torch.equal(found.best.offsets, again.best.offsets)
    assert not torch.equal(other.best.offsets, again.best.offsets)


def test_nothing_is_printed_and_the_level_of_the_log_comes_back(capfd):
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    try:
        study(*tumours(), make_metric("f1"), trials=3)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
        with pytest.raises(BudgetExceededError, match="exceed the limit of 5"):
            study(*tumours(), make_metric("f1"), limit=5)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.set_verbosity(before)
    assert capfd.readouterr().err == ""


def test_outputs_need_an_axis_of_classes():
    outputs, targets = rare_digits()
    with pytest.raises(ShapeError, match="class scores need outputs"):
        study(outputs[:, 0], targets, make_metric("f-macro"))
