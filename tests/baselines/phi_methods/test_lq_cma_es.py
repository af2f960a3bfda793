"""lq-CMA-ES: the package's own answer, and what it needs on a quadratic."""

import warnings

import numpy as np
import pytest
import torch

from baselines.phi_methods.lq_cma_es import LQCMAES
from metricopt.methods.cma_es import CMAES
from metricopt.methods.evolution import draw_seeds
from metricopt.methods.result import Budget
from tests.contracts.outputs_task import seeded
from tests.metricopt.quadratic_task import QuadraticTask


def test_it_queries_what_the_package_evaluates():
    task, reference = QuadraticTask(), QuadraticTask()
    found = LQCMAES().run(task, Budget(41, 0), seeded())
    asked = []

    def cost(point):
        asked.append(torch.tensor(np.asarray(point)[None], dtype=torch.float32))
        return reference.cost(asked[-1]).item()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cma

        options = {"seed": draw_seeds(1, seeded())[0], "verbose": -9}
        options |= {"tolflatfitness": 10**9, "maxfevals": 60}
        cma.fmin_lq_surr2(cost, 6 * [0.0], 0.5, options)
    # The first query is phi = 0.
    assert torch.equal(torch.cat(task.observed[1:]), torch.cat(asked[:40]))
    assert found.queries == task.queries == 41


def test_it_needs_fewer_queries_than_cma_es_on_a_quadratic():
    task = QuadraticTask()
    quick = LQCMAES().run(task, Budget(60, 0), seeded(), rows=3)
    slow = CMAES().run(task, Budget(120, 0), seeded(), rows=3)
    assert task.cost(quick.phi).max() < 0.5 * task.cost(slow.phi).min()


def test_a_search_that_stops_starts_anew_and_spends_all_queries():
    # It converges to rounding long before.
    task = QuadraticTask(2)
    found = LQCMAES().run(task, Budget(150, 0), seeded())
    assert found.queries == task.queries == 150
    assert task.cost(found.phi).item() < 1e-10


@pytest.mark.parametrize(("size", "suits"), [(32, True), (33, False)])
def test_many_dimensions_do_not_suit_it(size, suits):
    assert LQCMAES().suits(QuadraticTask(size)) == suits
