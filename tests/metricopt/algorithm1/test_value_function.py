"""Eq. (2): the value function, its two loss terms, Fisher sets and triplet mining."""

import math

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from metricopt.algorithm1.objective import (
    Points,
    embedding_distances,
    fisher_ratio,
    fisher_sets,
    hardest_triplets,
    multi_similarity_triplets,
    objective,
    ordinal_term,
    random_triplets,
    regression_term,
    value_loss,
)
from metricopt.algorithm1.recipe import Recipe
from metricopt.algorithm1.value_function import (
    Standardisation,
    ValueFunction,
)
from tests.golden import assert_golden, load_golden
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask

CASES = list(load_golden("metricopt_value_loss"))


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request):
    return request.param


@pytest.fixture
def points():
    """Prediction, embedding, mean and deviation of 24 points, float64."""
    generator = seeded(0)
    embedding = torch.randn(24, 5, generator=generator, dtype=torch.float64)
    mean = torch.rand(24, generator=generator, dtype=torch.float64)
    deviation = 0.02 + 0.2 * torch.rand(24, generator=generator, dtype=torch.float64)
    prediction = torch.rand(24, generator=generator, dtype=torch.float64)
    return prediction, embedding, mean, deviation


# Golden vectors.


def test_golden_fisher_sets(case):
    target = case.inputs["metric_mean"], case.inputs["sigma"]
    ratio = case.expected["fisher_ratio"]
    assert_golden(fisher_ratio(*target), ratio, case.tolerance)
    positive, negative = fisher_sets(*target)
    assert torch.equal(positive, case.expected["positive_mask"].bool())
    assert torch.equal(negative, case.expected["negative_mask"].bool())


def test_golden_loss_and_gradients(case):
    inputs, expected = case.inputs, case.expected
    prediction = inputs["prediction"].requires_grad_()
    embedding = inputs["embedding"].requires_grad_()
    target = inputs["metric_mean"], inputs["sigma"]
    regression = regression_term(prediction, *target)
    assert_golden(regression.detach(), expected["regression_term"], case.tolerance)
    ordinal = ordinal_term(embedding, inputs["triplets"])
    assert_golden(ordinal.detach(), expected["ordinal_term"], case.tolerance)
    gamma = case.settings["gamma"]
    total = value_loss(prediction, embedding, target, inputs["triplets"], gamma)
    assert_golden(total.detach(), expected["total"], case.tolerance)
    gradients = torch.autograd.grad(total, [prediction, embedding])
    assert_golden(gradients[0], expected["grad_prediction"], case.tolerance)
    assert_golden(gradients[1], expected["grad_embedding"], case.tolerance)


def test_golden_hardest_triplets(case):
    sets = fisher_sets(case.inputs["metric_mean"], case.inputs["sigma"])
    distance = embedding_distances(case.inputs["embedding"])
    farthest = case.expected["hardest_positive_index"].tolist()
    nearest = case.expected["hardest_negative_index"].tolist()
    places = zip(range(len(farthest)), farthest, nearest, strict=True)
    expected = [[*each] for each in places if min(each) >= 0]
    assert hardest_triplets(distance, *sets).tolist() == expected


# The formulas, in loops.


def test_regression_term_equals_a_loop(points):
    prediction, _, mean, deviation = points
    total = weight = 0.0
    for f, m, sigma in zip(prediction, mean, deviation, strict=True):
        total += abs(f - m) / sigma
        weight += 1 / sigma
    found = regression_term(prediction, mean, deviation)
    torch.testing.assert_close(found, total / weight)


def test_every_trajectory_has_the_same_share_of_the_regression_term(points):
    prediction, mean, deviation = (points[at].view(4, 6) for at in (0, 2, 3))
    rows = zip(prediction, mean, deviation, strict=True)
    alone = [regression_term(*row) for row in rows]
    # Surer by a factor of 100 in one trajectory: its points weigh no more than others'.
    deviation = deviation * torch.tensor([[1.0], [0.01], [1.0], [1.0]])
    found = regression_term(prediction, mean, deviation)
    torch.testing.assert_close(found, torch.stack(alone).mean())


def test_regression_term_weighs_certain_points_more():
    mean, deviation = torch.zeros(2), torch.tensor([0.1, 0.4])
    certain = regression_term(torch.tensor([1.0, 0.0]), mean, deviation)
    uncertain = regression_term(torch.tensor([0.0, 1.0]), mean, deviation)
    assert certain.item() == pytest.approx(0.8)
    assert uncertain.item() == pytest.approx(0.2)


def test_fisher_sets_equal_a_loop(points):
    _, _, mean, deviation = points
    positive, negative = fisher_sets(mean, deviation)
    for a in range(len(mean)):
        for b in range(len(mean)):
            variance = deviation[a] ** 2 + deviation[b] ** 2
            ratio = (mean[a] - mean[b]) ** 2 / variance
            assert positive[a, b] == (a != b and ratio < 2)
            assert negative[a, b] == (ratio >= 2)
    # The threshold itself is negative.
    positive, negative = fisher_sets(torch.tensor([0.0, 2.0]), torch.ones(2))
    assert not positive.any()
    assert torch.equal(negative, ~torch.eye(2, dtype=torch.bool))


def test_ordinal_term_equals_a_loop(points):
    _, embedding, _, _ = points
    triplets = torch.randint(24, (40, 3), generator=seeded())
    total = 0.0
    for anchor, positive, negative in triplets.tolist():
        near = math.dist(embedding[anchor].tolist(), embedding[positive].tolist())
        far = math.dist(embedding[anchor].tolist(), embedding[negative].tolist())
        total += math.log1p(math.exp(near - far))
    found = ordinal_term(embedding, triplets).item()
    assert found == pytest.approx(total / 40, rel=1e-12)


def test_ordinal_term_of_collapsed_and_of_distant_points_and_without_triplets():
    embedding, triplets = torch.ones(3, 4), torch.tensor([[0, 1, 2]])
    loss = ordinal_term(embedding.requires_grad_(), triplets)
    assert loss.item() == pytest.approx(math.log(2))
    assert torch.isfinite(torch.autograd.grad(loss, embedding)[0]).all()
    loss = ordinal_term(embedding, triplets[:0])
    assert loss.item() == 0.0
    assert torch.equal(torch.autograd.grad(loss, embedding)[0], torch.zeros(3, 4))
    assert ordinal_term(torch.tensor([[0.0], [1e4], [0.0]]), triplets).item() == 1e4


def test_embedding_distances_equal_a_loop(points):
    embedding = points[1]
    distance = embedding_distances(embedding)
    for a in range(24):
        for b in range(24):
            expected = math.dist(embedding[a].tolist(), embedding[b].tolist())
            assert distance[a, b].item() == pytest.approx(expected, abs=2e-6)


def test_the_loss_has_the_gradient_of_finite_differences(points):
    prediction, embedding, mean, deviation = points
    triplets = torch.randint(24, (20, 3), generator=seeded(1))
    # Coinciding points have no gradient there.
    triplets = triplets[(triplets[:, 0] != triplets[:, 1])]
    triplets = triplets[(triplets[:, 0] != triplets[:, 2])]
    assert torch.autograd.gradcheck(
        lambda f, g: value_loss(f, g, (mean, deviation), triplets),
        (prediction.requires_grad_(), embedding.requires_grad_()),
    )


# Mining.


def test_hardest_triplets_equal_a_loop(points):
    _, embedding, mean, deviation = points
    distance = embedding_distances(embedding)
    positive, negative = fisher_sets(mean, 0.3 * deviation)
    expected = []
    for anchor in range(24):
        near = positive[anchor].nonzero().flatten().tolist()
        far = negative[anchor].nonzero().flatten().tolist()
        if near and far:
            hardest = max(near, key=lambda other: distance[anchor, other])
            closest = min(far, key=lambda other: distance[anchor, other])
            expected.append([anchor, hardest, closest])
    assert 0 < len(expected) < 24
    assert hardest_triplets(distance, positive, negative).tolist() == expected


def informative(anchor, distance, positive, negative, margin):
    """Wang et al., Sec. 3.3, in loops: the eligible positives and negatives."""
    near = positive[anchor].nonzero().flatten().tolist()
    far = negative[anchor].nonzero().flatten().tolist()
    nearest = min(distance[anchor, other] for other in far)
    farthest = max(distance[anchor, other] for other in near)
    hard_near = {p for p in near if distance[anchor, p] > nearest - margin}
    hard_far = {n for n in far if distance[anchor, n] < farthest + margin}
    hardest = {max(near, key=lambda other: distance[anchor, other])}
    closest = {min(far, key=lambda other: distance[anchor, other])}
    return hard_near or hardest, hard_far or closest


@pytest.mark.parametrize("spread", [0.05, 1.0, 50.0])
def test_every_drawn_triplet_is_informative_and_every_informative_one_is_drawn(
    points, spread
):
    _, embedding, mean, deviation = points
    # Small spreads make all pairs informative; an embedding that follows the cost at
    # a large spread makes none, and the hardest are taken.
    if spread > 1:
        embedding = mean[:, None] * spread + 0 * embedding
    distance = embedding_distances(embedding * spread)
    sets = fisher_sets(mean, 0.3 * deviation)
    drawn = {anchor: (set(), set()) for anchor in range(24)}
    for seed in range(200):
        triplets = multi_similarity_triplets(distance, *sets, seeded(seed))
        for anchor, positive, negative in triplets.tolist():
            drawn[anchor][0].add(positive)
            drawn[anchor][1].add(negative)
    for anchor in range(24):
        if not (sets[0][anchor].any() and sets[1][anchor].any()):
            assert drawn[anchor] == (set(), set())
            continue
        expected = informative(anchor, distance, *sets, 0.1)
        assert drawn[anchor] == expected


def test_random_triplets_come_from_the_sets_and_reach_all_of_them(points):
    _, _, mean, deviation = points
    positive, negative = fisher_sets(mean, 0.3 * deviation)
    usable = (positive.any(1) & negative.any(1)).nonzero().flatten()
    seen = torch.zeros_like(positive), torch.zeros_like(negative)
    for seed in range(200):
        triplets = random_triplets(positive, negative, seeded(seed))
        assert torch.equal(triplets[:, 0], usable)
        seen[0][triplets[:, 0], triplets[:, 1]] = True
        seen[1][triplets[:, 0], triplets[:, 2]] = True
    assert torch.equal(seen[0][usable], positive[usable])
    assert torch.equal(seen[1][usable], negative[usable])


def test_there_are_no_triplets_where_all_costs_are_alike():
    sets = fisher_sets(torch.full((5,), 0.3), torch.full((5,), 0.1))
    distance = embedding_distances(torch.randn(5, 3, generator=seeded()))
    assert hardest_triplets(distance, *sets).shape == (0, 3)
    assert multi_similarity_triplets(distance, *sets, seeded()).shape == (0, 3)
    assert random_triplets(*sets, seeded()).shape == (0, 3)


def test_mining_depends_on_the_generator_alone(points):
    _, embedding, mean, deviation = points
    arguments = embedding_distances(embedding), *fisher_sets(mean, deviation)
    first = multi_similarity_triplets(*arguments, seeded(1))
    assert torch.equal(first, multi_similarity_triplets(*arguments, seeded(1)))
    assert not torch.equal(first, multi_similarity_triplets(*arguments, seeded(2)))


@pytest.fixture
def value_function():
    found = ValueFunction(7, seeded(3))
    phi = torch.randn(64, 7, generator=seeded(4))
    found.standardise(
        Standardisation(phi.mean(0), phi.std(0), torch.tensor(0.3), torch.tensor(0.2))
    )
    found(phi)
    return found.eval()


def test_layers_and_shapes(value_function):
    widths = [
        (layer.in_features, layer.out_features)
        for layer in value_function.modules()
        if isinstance(layer, nn.Linear)
    ]
    assert widths == [(7, 64), (64, 32), (32, 32), (32, 16), (16, 1)]
    phi = torch.randn(5, 7, generator=seeded())
    assert value_function.embed(phi).shape == (5, 16)
    assert (value_function.embed(phi) >= 0).all()
    assert value_function(phi).shape == (5,)
    assert value_function(phi[:0]).shape == (0,)


def test_prediction_undoes_the_standardisation(value_function):
    phi = torch.randn(5, 7, generator=seeded())
    score = value_function.score(value_function.embed(phi))
    torch.testing.assert_close(value_function(phi), 0.3 + 0.2 * score)
    scaled = (phi - value_function.phi_mean) / value_function.phi_deviation
    torch.testing.assert_close(value_function.body(scaled), value_function.embed(phi))
    # A new one standardises nothing.
    new = ValueFunction(7, seeded()).eval()
    assert torch.equal(new(phi), new.head(new.body(phi)).squeeze(1))


def test_other_cost_constants_leave_predictions_as_they_are(value_function):
    phi = torch.randn(9, 7, generator=seeded())
    before, score = value_function(phi), value_function.score(value_function.embed(phi))
    value_function.rescale(torch.tensor(0.25), torch.tensor(0.02))
    torch.testing.assert_close(value_function(phi), before)
    assert value_function.cost_mean == 0.25
    assert value_function.cost_deviation == torch.tensor(0.02)
    # In the new units the same prediction is another score.
    found = value_function.score(value_function.embed(phi))
    torch.testing.assert_close(found, (0.3 + 0.2 * score - 0.25) / 0.02)


def test_rows_are_independent_in_evaluation(value_function):
    phi = torch.randn(5, 7, generator=seeded())
    alone = torch.cat([value_function(row[None]) for row in phi])
    torch.testing.assert_close(value_function(phi), alone)


def test_weights_come_from_the_generator():
    state = ValueFunction(4, seeded(1)).state_dict()
    for name, weight in ValueFunction(4, seeded(1)).state_dict().items():
        assert torch.equal(weight, state[name])
    other = ValueFunction(4, seeded(2))
    assert not torch.equal(other.head.weight, state["head.weight"])


def test_the_network_has_the_gradient_of_finite_differences(value_function):
    exact = value_function.double()
    phi = torch.randn(3, 7, generator=seeded(6), dtype=torch.float64)
    assert torch.autograd.gradcheck(exact, (phi.requires_grad_(),), eps=1e-7)


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
