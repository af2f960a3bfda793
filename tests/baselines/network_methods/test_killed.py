"""A method that is killed in any epoch and called again ends as one that was not."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from baselines.learned_losses.reloss_surrogate import Fitting
from baselines.network_methods.contract import NETWORK_METHODS
from baselines.training.checkpoint import Checkpoints
from metricopt.process.seeding import make_generator
from tests.baselines.network_methods.test_network_methods import (
    NAMES,
    QUICK,
    make_problem,
    metered,
)

SETTINGS = QUICK | {
    "ala": {"period": 4, "measured": 1, "children": 2, "second": "finetune"},
    "self-paced": {"form": "global"},
    "l2t-dlf": {"students": 1, "teaching_epochs": 2, "window": 3},
    "learned-surrogate": {"warm_up": 5},
    "reloss": {"fitting": Fitting(epochs=2, groups=4)},
    "moew": {"rounds": 1, "per_round": 2, "search_epochs": 2},
}


REPEATED = {"l2t-dlf": 2}
"""Epochs without checkpoints: those of the teacher's students."""


class Killed(KeyboardInterrupt):
    """The process is gone."""


class Note:
    """What else is kept with every state."""

    epochs = 0

    def state(self):
        return {"epochs": self.epochs}

    def restore(self, state):
        self.epochs = state["epochs"]


def call(name, folder=None, kill_after=None):
    """Call a method; return its result, what it queried, and the epochs it trained."""
    # With dropout, balanced mini-batches and the best epoch kept.
    problem = make_problem("table")
    validation, trained, note = metered(problem), [], Note()

    def on_epoch(epoch):
        trained.append(epoch.number)
        note.epochs += 1
        if len(trained) == kill_after:
            raise Killed

    method = NETWORK_METHODS.get(name)(on_epoch=on_epoch, **SETTINGS.get(name, {}))
    result = method.train(
        problem.network,
        problem.batches,
        validation,
        training=replace(problem.training, epochs=3),
        generator=make_generator("killed"),
        checkpoints=folder and Checkpoints(folder, "k", validation.meter, note),
    )
    torch.rand(3)  # what others draw does not matter
    return result, validation.meter.made, trained, note.epochs


@cache
def undisturbed(name):
    return call(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_method_goes_on(name, tmp_path):
    expected, made, epochs, noted = undisturbed(name)
    again = REPEATED.get(name, 0)
    third = (len(epochs) - again) // 3
    for _ in range(2):
        with pytest.raises(Killed):
            call(name, tmp_path, kill_after=again + third + 1)
    result, queries, rest, counted = call(name, tmp_path)
    state = expected.network.state_dict()
    assert all(torch.equal(state[k], v) for k, v in result.network.state_dict().items())
    assert result.notes == expected.notes
    assert (result.queries, queries) == (expected.queries, made)
    assert result.gradient_steps == expected.gradient_steps
    assert counted == noted
    assert len(rest) == len(epochs) - 2 * third
