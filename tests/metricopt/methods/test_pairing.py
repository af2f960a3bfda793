"""Runs that are compared start at the same phi and see the same mini-batches."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from metricopt.algorithm1.mirror_training import MirrorRecipe
from metricopt.algorithm1.recipe import LITERAL, RECIPE
from metricopt.algorithm1.trajectories import Rollout
from metricopt.methods.contract import METHODS
from metricopt.methods.result import Budget
from metricopt.tasks.descent import paired_streams
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask

BUDGET, ROWS = Budget(queries=90, gradient_steps=6), 3
SMALL = {"tasks": 8, "block": 4, "rollout": Rollout(4, 2)}
RUNS = {
    "loss-only": {},
    "loss-only-dense": {},
    "metricopt": {"recipe": replace(RECIPE, **SMALL)},
    "metricopt-adam": {"recipe": replace(RECIPE, **SMALL), "optimizer": "adam"},
    "metricopt-checked": {"recipe": replace(RECIPE, **SMALL), "health_tasks": 4},
    "metricopt-literal": {"recipe": replace(LITERAL, **SMALL)},
    "metricopt-mirror": {
        "recipe": replace(RECIPE, **SMALL),
        "geometry": MirrorRecipe(tasks=2, block=2),
    },
}


class Watched(QuadraticTask):
    """Keeps where losses were asked for, and which examples were drawn for them."""

    def __init__(self):
        super().__init__()
        self.asked: list[tuple[Tensor, Tensor]] = []

    def _losses(self, phi, generator):
        indices = torch.randint(1000, (len(phi), 16), generator=generator)
        self.asked.append((phi.detach().clone(), indices))
        return super()._losses(phi, generator)


@cache
def final_run(name, seed, prepared):
    """Start [R, d] and batches [T, R, 16] of the run whose result is returned."""
    kind = "metricopt" if name in ("metricopt-adam", "metricopt-checked") else name
    method, task = METHODS.get(kind)(rate=0.1, **RUNS[name]), Watched()
    shared = method.prepare(Watched(), BUDGET, seeded(9)) if prepared else None
    method.run(task, BUDGET, seeded(seed), rows=ROWS, prepared=shared)
    # Trials of steps come before it.
    last = task.asked[-BUDGET.gradient_steps :]
    return last[0][0], torch.stack([indices for _, indices in last])


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("name", RUNS)
def test_equal_seeds_give_equal_starts_and_batches(name, prepared):
    start, batches = final_run(name, 4, prepared)
    expected_start, expected_batches = final_run("loss-only", 4, prepared)
    assert start.shape == (ROWS, QuadraticTask().size)
    assert torch.equal(start, expected_start)
    assert torch.equal(batches, expected_batches)
    other = final_run(name, 5, prepared)
    assert not torch.equal(other[0], start)
    assert not torch.equal(other[1], batches)


def test_what_else_is_drawn_does_not_move_the_descent():
    one, other = (paired_streams(seeded(3)) for _ in range(2))
    torch.randn(100, generator=other.search)
    for _ in range(2):
        first, second = (
            torch.rand(4, generator=streams.descent) for streams in (one, other)
        )
        assert torch.equal(first, second)
    same = torch.rand(4, generator=one.search)
    assert not torch.equal(same, torch.rand(4, generator=paired_streams(seeded(3))[0]))
    # Runs in succession differ.
    generator = seeded()
    streams = [paired_streams(generator).descent for _ in range(2)]
    first, second = (torch.rand(4, generator=each) for each in streams)
    assert not torch.equal(first, second)


def test_candidate_steps_are_tried_on_equal_trials():
    method, task = METHODS.get("metricopt")(rate=0.1, **RUNS["metricopt"]), Watched()
    shared = method.prepare(Watched(), BUDGET, seeded(9))
    method.run(task, BUDGET, seeded(4), prepared=shared)
    steps = BUDGET.gradient_steps
    trials = [task.asked[at : at + steps] for at in range(0, steps * 4, steps)]
    for trial in trials[1:]:
        assert torch.equal(trial[0][0], trials[0][0][0])
        for mine, first in zip(trial, trials[0], strict=True):
            assert torch.equal(mine[1], first[1])
    # And the run they choose a step for is not one of them.
    assert not torch.equal(task.asked[-steps][0][:1], trials[0][0][0][:1])
