"""A learned optimizer that is known already: used as it is, saved and loaded."""

from dataclasses import replace

import pytest
import torch

from baselines.optimizers.lstm import LSTMOptimizer
from metricopt.algorithm_s1.metricopt_learned import TRAINING, MetricOptLearned
from metricopt.errors import ConfigError
from metricopt.learned_optimizers import MetricOptMLP, load_optimizer, save_optimizer
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS
from metricopt.methods.known import KnownOptimizer, load_known, save_known
from metricopt.methods.result import Budget
from metricopt.options import FinetuneOptions
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask

BUDGET = Budget(queries=50, gradient_steps=6)
SMALL = replace(TRAINING, iterations=3, tasks=2, pairs=1)


def test_what_was_learned_is_known_and_gives_the_same_run(tmp_path):
    method = MetricOptLearned(training=SMALL)
    first = method.run(QuadraticTask(), BUDGET, seeded(), rows=2)
    path = tmp_path / "optimizer.safetensors"
    save_known(path, first.known[1])
    known = load_known(path)
    assert known.tasks == "runs of 6 steps of 6 parameters"
    assert load_optimizer(path).tasks == known.tasks
    task = QuadraticTask()
    again = MetricOptLearned().knowing(known, {}).run(task, BUDGET, seeded(), rows=2)
    assert torch.equal(again.phi, first.phi)
    # Observed before steps 1, 3 and 6, and never in meta-training.
    assert (again.queries, again.shared_queries, task.queries) == (3, 0, 6)
    assert again.known[0].optimizer is known.optimizer


def test_a_known_one_is_not_trained_again():
    known = KnownOptimizer(MetricOptMLP(6, ALL_INPUTS), "nothing")
    method = MetricOptLearned(known=known)
    task = QuadraticTask()
    assert method.preparation_key(BUDGET) is None
    prepared = method.prepare(task, BUDGET, seeded())
    assert prepared.queries == task.queries == 0
    assert method.value_function(prepared) is None


def test_any_kind_is_used_and_one_without_metric_queries_nothing():
    known = KnownOptimizer(LSTMOptimizer(20, scale=0.1), "quadratics")
    task = QuadraticTask()
    budget = Budget(0, 8)  # shorter than the optimizer was trained for
    found = MetricOptLearned(known=known).run(task, budget, seeded(), rows=3)
    assert (found.queries, task.queries) == (0, 0)
    assert found.phi.shape == (3, task.size)
    start = found.checkpoints[0].phi
    assert not torch.equal(found.phi, start)


def test_a_run_longer_than_it_was_trained_for_warns():
    method = MetricOptLearned(known=KnownOptimizer(LSTMOptimizer(5), "quadratics"))
    text = "trained for runs of 5 steps, and this one goes on to step 8"
    with pytest.warns(UserWarning, match=text):
        method.run(QuadraticTask(), Budget(0, 8), seeded())
    method.run(QuadraticTask(), Budget(0, 5), seeded())


def test_a_file_of_save_optimizer_is_used_by_load_known(tmp_path):
    path = tmp_path / "optimizer.safetensors"
    save_optimizer(path, MetricOptMLP(6, ALL_INPUTS), tasks="nothing")
    with pytest.raises(ConfigError, match=r"what load_known\(path\) .* SavedOptimizer"):
        FinetuneOptions(known=load_optimizer(path))
    assert FinetuneOptions(known=load_known(path)).known.tasks == "nothing"


def test_too_few_queries_and_other_knowledge_are_refused():
    known = KnownOptimizer(MetricOptMLP(6, ALL_INPUTS), "nothing")
    method = MetricOptLearned(known=known)
    message = "2 queries are left for the run, which needs 3: .* allow 1 more"
    with pytest.raises(ConfigError, match=message):
        method.run(QuadraticTask(), Budget(2, 6), seeded())
    other = MetricOptLearned(training=SMALL)
    with pytest.raises(ConfigError, match="has no use for a Known;"):
        other.knowing(type("Known", (), {})(), {})
