"""A learner against loops by hand: MAML, Meta-SGD, starts, orders and batch norms."""

import math
import re

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad

from metricopt.errors import (
    ConfigError,
    DataError,
    DivergedError,
    LossError,
    ShapeError,
)
from metricopt.fewshot import Episodes, MetaLearner, query_outputs
from metricopt.fewshot.examples import check_targets
from metricopt.geometry import (
    BlockDiagonal,
    BlockIAF,
    Diagonal,
    ExactPotential,
    Identity,
    KroneckerProduct,
)
from tests.metricopt.fewshot.drawn_episodes import (
    blob_learner,
    blobs,
    iaf,
    line_learner,
    lines,
    perceptron,
)

MAPS = [Identity, Diagonal, BlockDiagonal, KroneckerProduct, iaf, ExactPotential]


def by_hand(network, phi, support, rates, steps=5):
    """Gradient descent on the squared error, one rate a tensor."""

    def loss(phi):
        outputs = functional_call(network, phi, (support[0],))
        return (outputs - support[1]).square().mean()

    for _ in range(steps):
        gradient = grad(loss)(phi)
        phi = {n: w - rates[n] * gradient[n] for n, w in phi.items()}
    return phi


@pytest.mark.parametrize("geometry", MAPS)
def test_every_learner_starts_as_maml(geometry):
    learner, network = line_learner(geometry), perceptron(1, 1)
    ((support, query),) = lines([0]).one_by_one()
    phi = {n: w.detach() for n, w in network.named_parameters()}
    rates = dict.fromkeys(phi, 0.01)
    expected = by_hand(network, phi, support, rates)
    path = learner.adapt(*support)
    assert len(path.losses) == 5
    for name, weight in expected.items():
        torch.testing.assert_close(path.phi[-1][name], weight)
    maml = line_learner(Identity).adapt(*support)
    assert all(torch.equal(path.phi[-1][n], maml.phi[-1][n]) for n in phi)
    outputs = functional_call(network, expected, (query[0],))
    torch.testing.assert_close(learner.predict(path.phi[-1], query[0]), outputs)
    loss = (outputs - query[1]).square().mean()
    torch.testing.assert_close(learner.query_loss(support, query), loss)


def test_meta_sgd_learns_phi_and_steps_by_its_own_rates():
    network = perceptron(1, 1).double()
    learner = MetaLearner(network, nn.functional.mse_loss, Diagonal, rate=0.1)
    scale = learner.geometry.log_scale
    scale.data = torch.randn(len(scale), dtype=torch.float64) / 2
    phi = {n: w.detach() for n, w in network.named_parameters()}
    rates = learner.geometry.shapes.named(0.1 * scale.detach().exp())
    ((support, _),) = lines([1]).one_by_one()
    support = tuple(each.double() for each in support)
    expected = by_hand(network, phi, support, rates)
    found = learner.adapt(*support).phi
    for name, weight in expected.items():
        assert (found[0][name] - phi[name]).abs().max() < 1e-12
        assert (found[-1][name] - weight).abs().max() < 1e-12


@pytest.mark.parametrize("geometry", MAPS)
def test_a_trained_map_leaves_the_start_of_preconditioners_alone(geometry):
    learner = line_learner(geometry)
    before = {n: w.detach().clone() for n, w in learner.network.named_parameters()}
    with torch.no_grad():
        for seed, weight in enumerate(learner.geometry.parameters()):
            own = torch.Generator().manual_seed(seed)
            weight += 0.1 * torch.randn(weight.shape, generator=own)
    phi_0 = learner.geometry(learner.z_0())
    same = all(
        torch.allclose(phi_0[n], w, rtol=1e-4, atol=1e-5) for n, w in before.items()
    )
    assert same == learner.geometry.linear


def test_a_map_that_is_not_the_identity_starts_from_its_inverse():
    def shifted(phi):
        g = iaf(phi)
        g.first_shift.data.fill_(0.5)
        return g

    network = perceptron(1, 1)
    learner = line_learner(shifted)
    found = learner.geometry(learner.z_0())
    for name, weight in network.named_parameters():
        torch.testing.assert_close(found[name], weight.detach())
    assert not torch.allclose(learner.network[0].weight, network[0].weight)


def test_first_order_has_the_values_of_full_order_and_other_meta_gradients():
    ((support, query),) = blobs([0]).one_by_one()
    found = []
    for order in ("full", "first"):
        learner = blob_learner(order=order, rate=0.3)
        value = learner.query_loss(support, query)
        found.append((value, torch.autograd.grad(value, list(learner.parameters()))))
    (full, meta), (first, other) = found
    assert torch.equal(full, first)
    assert not torch.allclose(meta[0], other[0], rtol=1e-3)


def test_frozen_parameters_are_neither_adapted_nor_learned():
    network = perceptron(1, 1)
    network[0].requires_grad_(False)
    learner = MetaLearner(network, nn.functional.mse_loss, Diagonal)
    ((support, query),) = lines([0]).one_by_one()
    assert set(learner.adapt(*support).phi[-1]) == {"2.weight", "2.bias"}
    learner.query_loss(support, query).backward()
    assert learner.network[0].weight.grad is None
    assert learner.network[2].weight.grad.abs().sum() > 0
    assert learner.size == 2 * 7


def convolution(**norm):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1),
        nn.BatchNorm2d(3, **norm),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Flatten(),
        nn.Linear(12, 2),
    )


def image_episodes(count=3):
    own = torch.Generator().manual_seed(5)
    images = torch.randn(count, 8, 1, 8, 8, generator=own)
    labels = torch.arange(8).expand(count, -1) % 2
    return images[:, :4], labels[:, :4], images[:, 4:], labels[:, 4:]


def test_a_learner_frozen_after_its_training_adapts_as_before():
    learner = line_learner()
    ((support, _),) = lines([0]).one_by_one()
    expected = learner.adapt(*support).phi[-1]
    frozen = learner.requires_grad_(False).adapt(*support).phi[-1]
    assert all(torch.equal(frozen[name], phi) for name, phi in expected.items())


def test_a_loss_with_weights_is_copied():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, outputs, targets):
            return self.scale * nn.functional.mse_loss(outputs, targets)

    loss = Scaled()
    first, second = (MetaLearner(perceptron(1, 1), loss) for _ in range(2))
    with torch.no_grad():
        first.loss.scale += 1
    assert (first.loss.scale, second.loss.scale, loss.scale) == (2, 1, 1)


def test_norms_see_the_batch_alone_in_a_loop_and_all_at_once():
    network = convolution(track_running_stats=False)
    learner = MetaLearner(network, nn.functional.cross_entropy, iaf, rate=0.1)
    episodes = Episodes(*image_episodes())
    loop, together = (
        query_outputs(learner, episodes, batching=each) for each in ("loop", "vmap")
    )
    torch.testing.assert_close(loop, together)
    assert loop.shape == (3, 4, 2)
    # An episode does not depend on those beside it, nor on those before.
    alone = Episodes(*(each[2:] for each in episodes.tensors()))
    assert torch.equal(query_outputs(learner, alone)[0], loop[2])
    learner.eval()
    assert torch.equal(query_outputs(learner, alone)[0], loop[2])
    none = query_outputs(learner, episodes, steps=0)
    torch.testing.assert_close(none[0], network(episodes.query_inputs[0]).detach())


def test_running_statistics_are_refused():
    with pytest.raises(ConfigError, match=re.escape("'1' has running ones")):
        MetaLearner(convolution(), nn.functional.cross_entropy)


def overflowing(phi):
    g = BlockIAF(phi, scale="exp", generator=torch.Generator().manual_seed(0))
    g.first_a.data.fill_(1000.0)
    return g


@pytest.mark.parametrize(
    ("geometry", "error", "message"),
    [
        (
            lambda phi: BlockIAF(phi, [("0.weight", "0.bias"), ("2.weight",)]),
            ConfigError,
            "every parameter exactly once; '2.bias' is in no block",
        ),
        (overflowing, DivergedError, "a scale of '0.weight' is inf"),
        (
            lambda phi: nn.Linear(1, 1),
            ConfigError,
            "geometry makes must be a MirrorMap, got",
        ),
    ],
)
def test_maps_of_no_use_are_refused_at_once(geometry, error, message):
    with pytest.raises(error, match=re.escape(message)):
        line_learner(geometry)


def test_a_loss_that_is_no_function_is_refused():
    with pytest.raises(ConfigError, match="loss must be a function of outputs and"):
        MetaLearner(perceptron(1, 1), None)


def test_a_network_with_nothing_to_adapt_is_refused():
    with pytest.raises(ConfigError, match="a parameter that requires a gradient"):
        MetaLearner(nn.ReLU(), nn.functional.mse_loss)
    with pytest.raises(ConfigError, match="network must be a torch module, got"):
        MetaLearner(torch.relu, nn.functional.mse_loss)


def test_a_task_that_diverges_shows_in_its_path():
    learner = line_learner(rate=1e6)
    ((support, _),) = lines([0]).one_by_one()
    losses = [loss.item() for loss in learner.adapt(*support, steps=30).losses]
    assert math.isfinite(losses[0])
    assert not math.isfinite(losses[-1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": -1}, "steps must be at least 0, got -1"),
        ({"steps": 2.5}, "steps must be a whole number, got 2.5"),
        ({"rate": 0.0}, "rate must be a positive and finite number, got 0.0"),
        ({"rate": None}, "rate must be a positive and finite number, got None"),
        ({"rate": "0.1"}, "rate must be a positive and finite number, got '0.1'"),
        ({"rate": True}, "rate must be a positive and finite number, got True"),
        ({"geometry": "BlockIAF"}, "geometry must be a function to a MirrorMap, got"),
        ({"order": "second"}, "order must be one of 'full', 'first', got 'second'"),
    ],
)
def test_settings_out_of_their_range_are_refused_at_once(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        line_learner(**changes)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_networks_of_half_precision_are_refused(kind):
    message = f"must be float32 or float64, but '0.weight' is {kind}"
    with pytest.raises(ConfigError, match=message.replace("torch.", "")):
        MetaLearner(perceptron(1, 1).to(kind), nn.functional.mse_loss, iaf)


def test_networks_of_double_precision_adapt():
    learner = MetaLearner(perceptron(1, 1).double(), nn.functional.mse_loss, iaf)
    ((support, _),) = lines([0]).one_by_one()
    path = learner.adapt(*(each.double() for each in support))
    assert path.losses[0].dtype == torch.float64
    assert path.losses[-1] < path.losses[0]


X, Y = torch.zeros(6, 4), torch.arange(6) % 3


@pytest.mark.parametrize(
    ("inputs", "targets", "error", "message"),
    [
        (X, Y[:5], ShapeError, "needs inputs and targets [n, ...] with n >= 1, got fl"),
        (X[:0], Y[:0], ShapeError, "got float32 [0, 4] and int64 [0]"),
        (X, 3, ShapeError, "got float32 [6, 4] and 3"),
        (X, Y + 1, DataError, "classes in [0, 2] for outputs [n, 3], got 1 to 3"),
        (X, Y.int(), DataError, "that are classes must be int64, got int32 [6]: use"),
        (X.double(), Y, ConfigError, "must take float64 [6, 4], but raised Runtime"),
        (X, Y.float(), LossError, "and targets float32 [6], but raised RuntimeError"),
        (X * math.nan, Y, DataError, "must be finite before any step, got nan; look"),
    ],
)
def test_examples_of_no_use_are_refused(inputs, targets, error, message):
    learner = blob_learner()
    with pytest.raises(error, match=re.escape(message)):
        learner.adapt(inputs, targets)


@pytest.mark.parametrize("batching", ["loop", "vmap"])
def test_episodes_to_answer_are_checked_too(batching):
    found = blobs([0, 1])
    wrong = Episodes(found.support_inputs, found.support_targets + 1, *found.query)
    with pytest.raises(DataError, match=re.escape("in [0, 2] for outputs [n, 3], got")):
        query_outputs(blob_learner(), wrong, batching=batching)


@pytest.mark.parametrize(
    ("outputs", "targets"), [((), (1,)), ((1,), ()), ((2,), (2, 1)), ((2,), (1, 2))]
)
def test_targets_that_would_be_compared_all_with_all_are_refused(outputs, targets):
    with pytest.raises(ShapeError, match="targets must have the shape of the outputs"):
        check_targets(torch.zeros(5, *targets), outputs)
    check_targets(torch.zeros(5, *outputs), outputs)
    # As a likelihood has them: a mean and a deviation of one number.
    check_targets(torch.zeros(5, 1), (2,))
