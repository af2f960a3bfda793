"""The parts of meta-training: outer step, objective, mining, settings."""

import math
from dataclasses import replace

import pytest
import torch

from metricopt.algorithm1.meta_training import interpolate_weights
from metricopt.algorithm1.objective import (
    Points,
    equal_weight,
    fisher_sets,
    mine,
    objective,
    regression_term,
    value_loss,
)
from metricopt.algorithm1.recipe import RECIPE, Recipe
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError
from tests.metricopt.drawn import seeded


def test_outer_steps_interpolate_weights_and_copy_statistics():
    initial, adapted = ValueFunction(3, seeded(1)), ValueFunction(3, seeded(2))
    adapted(torch.randn(8, 3, generator=seeded()))
    expected = {
        name: weight.detach() + 0.3 * (adapted.get_parameter(name) - weight).detach()
        for name, weight in initial.named_parameters()
    }
    interpolate_weights(initial, adapted, 0.3)
    for name, weight in initial.named_parameters():
        torch.testing.assert_close(weight.detach(), expected[name])
    for name, statistic in initial.named_buffers():
        assert torch.equal(statistic, adapted.get_buffer(name))


@pytest.fixture
def batch():
    generator = seeded(3)
    return Points(
        torch.randn(5, 8, 4, generator=generator),
        torch.rand(5, 8, generator=generator),
        0.01 + 0.1 * torch.rand(5, 8, generator=generator),
    )


def test_the_objective_is_the_value_loss_in_standardised_costs(batch):
    value_function = ValueFunction(4, seeded()).eval()
    value_function.cost_mean.fill_(0.4)
    value_function.cost_deviation.fill_(0.2)
    recipe = replace(RECIPE, mining="hardest")
    found = objective(value_function, batch, recipe, seeded(), gamma=3.0)
    phi = batch.phi.flatten(0, 1)
    embedding = value_function.embed(phi)
    target = (batch.mean - 0.4) / 0.2, batch.deviation / 0.2
    triplets = mine(embedding, target, "hardest", seeded())
    prediction = ((value_function(phi) - 0.4) / 0.2).view(5, 8)
    expected = value_loss(prediction, embedding, target, triplets, 3.0)
    torch.testing.assert_close(found, expected)


def test_without_uncertainty_all_points_weigh_the_same(batch):
    value_function = ValueFunction(4, seeded()).eval()
    recipe = replace(RECIPE, mining="none", uncertainty=False)
    found = objective(value_function, batch, recipe, seeded(), gamma=1.0)
    predicted = value_function(batch.phi.flatten(0, 1)).view(5, 8)
    torch.testing.assert_close(found, (predicted - batch.mean).abs().mean())
    weighted = objective(
        value_function, batch, replace(recipe, uncertainty=True), seeded(), gamma=1.0
    )
    expected = regression_term(predicted, batch.mean, batch.deviation)
    torch.testing.assert_close(weighted, expected)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_both_terms_start_with_the_same_size_whatever_the_metric(batch, scale):
    value_function = ValueFunction(4, seeded()).eval()
    before = {name: part.clone() for name, part in value_function.state_dict().items()}
    batch = Points(batch.phi, batch.mean * scale, batch.deviation * scale)
    gamma = equal_weight(value_function, batch, RECIPE, seeded(1))
    for name, part in value_function.state_dict().items():
        assert torch.equal(part, before[name])
    value_function.train()
    both = objective(value_function, batch, RECIPE, seeded(1), gamma=gamma)
    ordinal = objective(value_function, batch, RECIPE, seeded(1), gamma=0.0)
    torch.testing.assert_close(both, 2 * ordinal)


def test_without_triplets_the_ordinal_term_counts_as_that_of_a_blind_embedding(batch):
    value_function, recipe = ValueFunction(4, seeded()), replace(RECIPE, mining="none")
    gamma = equal_weight(value_function, batch, recipe, seeded())
    found = objective(value_function, batch, recipe, seeded(), gamma=gamma)
    assert found.item() == pytest.approx(math.log(2), rel=1e-5)


@pytest.mark.parametrize("mining", ["multi-similarity", "hardest", "random", "none"])
@pytest.mark.parametrize("count", [40, 300])
def test_mined_triplets_come_from_the_fisher_sets(mining, count):
    generator = seeded(4)
    embedding = torch.randn(count, 5, generator=generator)
    target = torch.rand(count, generator=generator), torch.full((count,), 0.1)
    triplets = mine(embedding, target, mining, generator)
    positive, negative = fisher_sets(*target)
    assert (len(triplets) == 0) == (mining == "none")
    assert triplets.shape[1:] == (3,)
    anchor, near, far = triplets.unbind(1)
    assert positive[anchor, near].all()
    assert negative[anchor, far].all()


def test_a_recipe_needs_tasks_blocks_and_groups():
    for setting in ("tasks", "block", "group"):
        with pytest.raises(ConfigError, match="tasks, block and group >= 1, got"):
            Recipe(**{setting: 0})
