"""What mining does to the embedding of a value function."""

import pytest
import torch
from scipy.stats import spearmanr

from metricopt.algorithm1.objective import Points, objective
from metricopt.algorithm1.recipe import Recipe
from metricopt.algorithm1.value_function import ValueFunction
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask


@pytest.fixture(scope="module")
def noisy_path():
    """phi on straight runs to the metric's minimum, with clean and noisy costs."""
    task, generator = QuadraticTask(), seeded()
    start = torch.randn(8, 1, task.size, generator=generator)
    end = task.metric_minimum + 0.3 * torch.randn(8, 1, task.size, generator=generator)
    phi = start.lerp(end, torch.linspace(0, 1, 20)[:, None]).flatten(0, 1)
    cost = task.cost(phi).float()
    clean = (cost - cost.mean()) / cost.std()
    return phi, clean, clean + 0.3 * torch.randn(len(phi), generator=generator)


def fitted_embedding(noisy_path, mining):
    phi, _, cost = noisy_path
    generator = seeded(1)
    value_function = ValueFunction(phi.shape[1], generator).train()
    points = Points(phi[None], cost[None], torch.full_like(cost, 0.1)[None])
    recipe = Recipe(mining=mining)
    optimizer = torch.optim.Adam(value_function.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        objective(value_function, points, recipe, generator, gamma=0.0).backward()
        optimizer.step()
    with torch.no_grad():
        return value_function.embed(phi)


def spread(embedding):
    return (embedding - embedding.mean(0)).square().sum(1).mean().sqrt().item()


def test_always_taking_the_hardest_collapses_the_embedding(noisy_path):
    assert spread(fitted_embedding(noisy_path, "hardest")) < 0.01


def test_multi_similarity_mining_keeps_an_embedding_ordered_by_cost(noisy_path):
    embedding = fitted_embedding(noisy_path, "multi-similarity")
    assert spread(embedding) > 1.0
    gaps = torch.pdist(noisy_path[1][:, None])
    assert spearmanr(torch.pdist(embedding), gaps).statistic > 0.8
