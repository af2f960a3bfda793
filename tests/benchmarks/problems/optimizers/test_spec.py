"""A meta-trained optimizer: its identity, its training, its release, a kill."""

from dataclasses import replace

import pytest
import torch

from benchmarks.execution.networks import networks_of, prepare
from benchmarks.problems.optimizers.spec import OptimizerSpec
from benchmarks.problems.pretrained import weights
from benchmarks.problems.pretrained.weights import released_problems
from benchmarks.runs.spec import Unit
from metricopt.errors import BudgetExceededError, DataError
from metricopt.learned_optimizers.contract import kind_of
from tests.benchmarks.execution.killed_training import undisturbed_and_resumed
from tests.benchmarks.problems.optimizers.learning_cases import (
    BY_METRIC,
    BY_STATISTICS,
    JOINT,
    ON_LOSS,
    T,
    learned_spec,
)
from tests.benchmarks.problems.pipeline_cases import tabular_unit


@pytest.fixture(autouse=True)
def folders(shared_cache, tmp_path, monkeypatch):
    """Networks are shared; released optimizers have a folder of the test."""
    monkeypatch.setattr(weights, "RELEASED", tmp_path / "weights")


def spec_of(learning, metric="f1", number=0, **training):
    changed = replace(learning, training={**learning.training, **training})
    return OptimizerSpec(tabular_unit(), Unit(metric), changed, 1, number)


def test_the_metric_is_no_part_of_one_that_never_asks_for_it():
    assert spec_of(ON_LOSS, "f1").digest == spec_of(ON_LOSS, "mcr").digest
    assert spec_of(JOINT, "f1").digest != spec_of(JOINT, "mcr").digest
    assert spec_of(ON_LOSS, number=1).digest != spec_of(ON_LOSS).digest
    assert spec_of(ON_LOSS, rate=0.1).digest != spec_of(ON_LOSS).digest
    assert spec_of(ON_LOSS).name.startswith(
        "optimizer-breast_cancer-metricopt-mlp-by-loss-r1-0-"
    )


def test_one_is_trained_once_released_and_found():
    spec = spec_of(ON_LOSS, seed=1)
    assert not spec.is_ready
    spec.make(quiet=True)
    assert spec.is_made and not spec.checkpoints.exists()
    told = spec.release()
    assert (told["iterations"], told["queries"]) == ("3", "0")
    assert not released_problems(weights.RELEASED)
    found = spec.find()
    assert kind_of(found.optimizer) == "metricopt-mlp"
    assert not found.optimizer.training
    assert "fine-tunings of 6 steps of the pipeline tabular" in found.tasks
    facts = spec.kept().facts
    assert facts["inputs"] == ["gradient", "loss change", "time"]
    assert facts["horizon"] == T
    # Three iterations of 2 runs in 2 copies, as long as the horizon; 8 runs to validate
    # on, at first and at last.
    assert facts["inner_steps"] == (3 * 4 + 2 * 8) * T
    other = spec_of(ON_LOSS, number=1, seed=1).find().optimizer
    pairs = zip(found.optimizer.parameters(), other.parameters(), strict=True)
    assert not all(torch.equal(one, another) for one, another in pairs)


@pytest.mark.parametrize(
    ("learning", "queries"), [(JOINT, 18), (BY_METRIC, 84), (BY_STATISTICS, 20)]
)
def test_all_queries_of_a_supervision_are_charged(learning, queries):
    # Algorithm S1: 3 iterations of 2 runs, observed 3 times each.
    facts = spec_of(learning).kept().facts
    assert facts["queries"] == queries
    assert len(facts["inputs"]) == 9
    if learning == BY_STATISTICS:
        # Queried in 3 fine-tunings, and validated on 8 runs, at first and at last.
        assert facts["inner_steps"] == (3 * 4 + 3 + 2 * 8) * T
    else:
        lines_3 = 3 * 2 if learning == JOINT else 0
        assert facts["inner_steps"] == (3 * 4 + lines_3) * T


def test_more_queries_than_were_asked_for_are_refused():
    with pytest.raises(BudgetExceededError):
        spec_of(replace(BY_METRIC, queries=83)).kept()


def test_weights_of_another_form_are_refused():
    spec = spec_of(ON_LOSS)
    spec.make(quiet=True)
    path = spec.write()
    path.write_bytes(path.read_bytes()[:-4] + b"0000")
    (problem,) = released_problems(weights.RELEASED)
    assert "must hold the weights" in problem
    narrower = replace(ON_LOSS, form={"inputs": ["gradient"]})
    other = spec_of(narrower)
    with pytest.raises(DataError, match="does not fit the network"):
        weights.restore(other.learning.fresh(0), spec.kept().tensors, spec.name)


def test_optimizers_that_runs_need_are_trained_before_them():
    runs = [learned_spec(ON_LOSS), learned_spec(JOINT, 40, value_functions=2)]
    needed = networks_of(runs)
    assert [each.learning for each in needed] == [ON_LOSS, JOINT, JOINT]
    assert [each.number for each in needed] == [0, 0, 1]
    prepare(runs)
    assert all(each.is_made for each in networks_of(runs))


KILLED = """
from tests.benchmarks.problems.optimizers.test_spec import KILLED_TRAINING, spec_of
from tests.benchmarks.problems.optimizers.learning_cases import ON_LOSS

spec_of(ON_LOSS, **KILLED_TRAINING).make(quiet=True)
"""
KILLED_TRAINING = {"save_every": 0.0, "iterations": 5}


def test_a_killed_meta_training_goes_on_and_ends_with_the_same_bits(
    tmp_path, monkeypatch
):
    spec = spec_of(ON_LOSS, **KILLED_TRAINING)
    expected, found = undisturbed_and_resumed(spec, KILLED, tmp_path, monkeypatch)
    assert found.facts["weights"] == expected.facts["weights"]
