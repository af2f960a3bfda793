"""One thread for a while, then the user's number again."""

import pytest
import torch

from metricopt.algorithm1.meta_training import MetaTraining
from metricopt.algorithm1.recipe import Recipe
from metricopt.algorithm1.trajectories import Rollout
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.methods.guided_cma import GuidedCMA
from metricopt.methods.result import Budget
from metricopt.process.keeping import one_thread
from metricopt.tasks.descent import loss_optimizer
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_is_restored(threads):
    torch.set_num_threads(threads)
    with one_thread():
        assert torch.get_num_threads() == 1
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads
    with pytest.raises(KeyboardInterrupt), one_thread():
        raise KeyboardInterrupt
    assert torch.get_num_threads() == threads


class Watched(QuadraticTask):
    """Notes with how many threads a network would run."""

    def __init__(self):
        super().__init__()
        self.threads = set()

    def _losses(self, phi, generator):
        self.threads.add(torch.get_num_threads())
        return super()._losses(phi, generator)

    def _observe(self, phi):
        self.threads.add(torch.get_num_threads())
        return super()._observe(phi)


@pytest.fixture
def inside(monkeypatch):
    """The threads a value function is evaluated with."""
    found, embed = set(), ValueFunction.embed

    def watched(self, phi):
        found.add(torch.get_num_threads())
        return embed(self, phi)

    monkeypatch.setattr(ValueFunction, "embed", watched)
    return found


def test_a_value_function_is_trained_and_followed_in_one_thread(inside):
    torch.set_num_threads(2)
    recipe = Recipe(tasks=8, block=4, group=2, rollout=Rollout(5, 2))
    task = Watched()
    generator = seeded(0)
    training = MetaTraining(task, recipe, loss_optimizer("sgd", 0.1), generator)
    while not training.finished:
        training.advance()
    assert inside == {1}
    # Networks have all threads: convolutions use them.
    assert task.threads == {2}
    assert torch.get_num_threads() == 2


def test_a_search_with_a_value_function_fits_it_in_one_thread(inside):
    torch.set_num_threads(2)
    task = Watched()
    generator = seeded(0)
    GuidedCMA(warm_up=8, fit_steps=2).run(task, Budget(30, 0), generator)
    assert inside == {1}
    assert task.threads == {2}
