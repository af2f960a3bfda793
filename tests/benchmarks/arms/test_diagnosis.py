"""Diagnosis of a value function: outside the budget, with points for figures."""

from dataclasses import replace

import torch

from benchmarks.arms.diagnosis import _in_a_plane
from tests.benchmarks.arms.arm_cases import metricopt_spec, record_of

RANKED = {"spearman_loss", "spearman_guided", "loss_spearman"}
NAMES = RANKED | {"value_error_loss", "value_error_guided"}
POINTS = ("health_true", "health_predicted", "embedding_x", "embedding_cost")


def test_diagnosis_is_outside_the_budget_and_draws_in_replicate_0_only():
    spec = metricopt_spec(diagnose=True)
    found, plain = record_of(spec), record_of(metricopt_spec())
    notes = found.notes
    assert set(notes) >= NAMES and not set(plain.notes) & NAMES
    assert all(-1 <= notes[name] <= 1 for name in sorted(RANKED))
    # What both kinds of trajectories say together measures the gap between them.
    assert not set(notes) & {"spearman", "value_error"}
    assert "embedding_x" not in notes
    # The result is that of the run without it, and costs as much.
    assert (found.test, found.queried) == (plain.test, plain.queried)
    notes = record_of(replace(spec, replicate=0)).notes
    assert len({len(notes[name]) for name in POINTS}) == 1
    assert len(notes["path_steps"]) == len(notes["path_loss_cost"]) == 10


def test_a_dead_value_function_is_one_point():
    assert _in_a_plane(torch.ones(40, 3)).tolist() == [[0.0, 0.0]] * 40
    generator = torch.Generator().manual_seed(0)
    place = _in_a_plane(torch.randn(40, 3, generator=generator))
    assert place.shape == (40, 2) and bool(torch.isfinite(place).all())
    assert len(place.unique(dim=0)) == 40
