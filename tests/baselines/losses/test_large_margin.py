"""Large-margin softmax against golden vectors, its formula by angles and a package."""

import math

import pytest
import torch
from torch import nn

from baselines.losses.contract import make_loss
from baselines.losses.large_margin import (
    Annealing,
    LargeMarginSoftmax,
    MarginHead,
    margin_of_cosine,
)
from metricopt.errors import ConfigError
from tests.golden import assert_golden, load_golden

GOLDEN = list(load_golden("lsoftmax"))


def head_of(weight):
    """A head with this weight, shape [C, D]."""
    head = MarginHead(weight.shape[1], weight.shape[0]).to(weight)
    head.weight.data = weight
    return head


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def naive_psi(cosine, margin):
    """The piecewise formula, by the angle."""
    angle = math.acos(min(max(cosine, -1.0), 1.0))
    k = min(int(margin * angle / math.pi), margin - 1)
    return (-1) ** k * math.cos(margin * angle) - 2 * k


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_golden(case):
    inputs, expected, tolerance = case.inputs, case.expected, case.tolerance
    head, features = head_of(inputs["weight"].T), inputs["x"].requires_grad_()
    margin, annealing = case.settings["m"], case.settings["lambda"]
    loss = LargeMarginSoftmax(3, margin=margin, annealing=annealing)
    loss.classes = inputs["weight"].shape[1]
    outputs = head(features)
    value = loss(outputs, inputs["labels"])
    value.backward()
    logits = loss.lowered_logits(outputs, inputs["labels"])
    assert_golden(logits.detach(), expected["logits"], tolerance)
    assert_golden(value.detach(), expected["loss"], tolerance)
    assert_golden(features.grad, expected["grad_x"], tolerance)
    assert_golden(head.weight.grad.T, expected["grad_weight"], tolerance)
    psi = margin_of_cosine(expected["cos_target"], margin)
    assert_golden(psi, expected["psi_target"], tolerance)


@pytest.mark.parametrize("margin", [1, 2, 3, 4, 5])
def test_psi_is_the_formula_by_angles_and_falls(margin):
    ends = [math.cos(k * math.pi / margin) for k in range(margin + 1)]
    grid = torch.linspace(1, -1, 2001, dtype=torch.float64)
    cosine = torch.cat([grid, torch.tensor(ends, dtype=torch.float64)])
    cosine = cosine.sort(descending=True).values.requires_grad_()
    psi = margin_of_cosine(cosine, margin)
    expected = [naive_psi(c, margin) for c in cosine.tolist()]
    torch.testing.assert_close(psi, torch.tensor(expected, dtype=torch.float64))
    assert psi[0].item() == pytest.approx(1)
    assert psi[-1].item() == pytest.approx(1 - 2 * margin)
    assert (psi.diff() <= 1e-12).all()
    psi.sum().backward()
    assert cosine.grad.isfinite().all()
    assert (cosine.grad >= -1e-9).all()


@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")
@pytest.mark.parametrize("margin", [2, 3, 4])
def test_without_annealing_it_is_that_of_pytorch_metric_learning(margin):
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    peer = losses.LargeMarginSoftmaxLoss(3, 5, margin=margin).double()
    features, targets = draw(20, 5), torch.arange(20) % 3
    weight = draw(3, 5, seed=1)
    peer.W.data = weight.T.clone()
    ours, theirs = (features.clone().requires_grad_() for _ in range(2))
    head = head_of(weight)
    loss = LargeMarginSoftmax(3, margin=margin, annealing=0.0)
    value, expected = loss(head(ours), targets), peer(theirs, targets)
    value.backward()
    expected.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)
    torch.testing.assert_close(head.weight.grad, peer.W.grad.T)


def test_gradients_through_the_head_equal_finite_differences():
    head, targets = head_of(draw(3, 4, seed=1)), torch.tensor([0, 1, 2, 2, 0])
    loss = LargeMarginSoftmax(3, annealing=1.5)
    features = draw(5, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(head(x), targets), (features,))


def test_more_annealing_comes_closer_to_cross_entropy():
    head, targets = head_of(draw(3, 4, seed=1)), torch.arange(12) % 3
    outputs = head(draw(12, 4))
    plain = nn.functional.cross_entropy(outputs[:, :3], targets)
    loss, values = LargeMarginSoftmax(3), []
    for annealing in (0.0, 5.0, 100.0, 1e9):
        loss.annealing = annealing
        values.append(loss(outputs, targets).item())
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(plain.item(), rel=1e-6)
    alone = LargeMarginSoftmax(3, margin=1)(outputs, targets)
    torch.testing.assert_close(alone, plain)


def test_head_gives_logits_and_products_of_lengths():
    head, features = head_of(draw(3, 4, seed=1)), draw(2, 5, 4)
    outputs = head(features)
    torch.testing.assert_close(outputs[..., :3], features @ head.weight.T)
    for row in range(2):
        for example in range(5):
            for label in range(3):
                lengths = features[row, example].norm(), head.weight[label].norm()
                found = outputs[row, example, 3 + label]
                torch.testing.assert_close(found, lengths[0] * lengths[1])


def test_head_starts_like_a_linear_layer():
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        head = MarginHead(6, 4)
        torch.manual_seed(3)
        linear = nn.Linear(6, 4, bias=False)
    assert torch.equal(head.weight, linear.weight)
    assert [name for name, _ in head.named_parameters()] == ["weight"]


@pytest.mark.parametrize("features", [torch.zeros(3, 4), torch.full((3, 4), 1e4)])
def test_vanishing_and_long_features_have_finite_gradients(features):
    features, head = features.requires_grad_(), MarginHead(4, 3)
    loss = LargeMarginSoftmax(3)(head(features), torch.tensor([0, 1, 2]))
    loss.backward()
    assert loss.isfinite()
    assert features.grad.isfinite().all()
    assert head.weight.grad.isfinite().all()


@pytest.mark.parametrize("margin", [2, 3, 4])
@pytest.mark.parametrize("sign", [1, -1])
def test_parallel_vectors_have_finite_gradients(margin, sign):
    features = torch.tensor([[1.0, 2.0, -3.0]]).requires_grad_()
    head = head_of(torch.stack([0.7 * sign * features[0].detach(), torch.ones(3)]))
    loss = LargeMarginSoftmax(2, margin=margin, annealing=0.0)
    logits = loss.lowered_logits(head(features), torch.tensor([0]))
    length = 0.7 * 14
    end = length if sign == 1 else length * (1 - 2 * margin)
    assert logits[0, 0].item() == pytest.approx(end, rel=1e-5)
    logits[0, 0].backward()
    assert features.grad.isfinite().all()


RELEASED = {"start": 1000.0, "gamma": 1e-05, "least": 5.0, "steps": 12000}


def test_annealing_follows_the_power_rule():
    published = Annealing(gamma=2e-5, least=0.0, steps=20_000)
    assert published.at(0) == 1000
    assert published.at(5000) == pytest.approx(1000 / (1 + 2e-5 * 5000) ** 45)
    assert Annealing(gamma=2e-5, least=5.0, steps=1).at(20_000) == 5
    assert Annealing(gamma=1.0, least=0.0, steps=1, start=8.0, power=1.0).at(3) == 2


@pytest.mark.parametrize("steps", [12_000, 4_000, 70, 30_000])
def test_annealing_falls_with_the_steps_of_a_training_of_any_length(steps):
    loss = make_loss("large-margin", classes=3, margin=4, annealing=RELEASED)
    assert loss.annealing == 1000.0
    for step in (0, 1, steps // 3, steps - 1, steps):
        loss.before_step(step, steps)
        place = round(step * 12_000 / steps)
        assert loss.annealing == max(5.0, 1000.0 * (1 + 1e-05 * place) ** -45.0)
    last = loss.annealing
    assert last == pytest.approx(1000 * 1.12**-45)
    again = LargeMarginSoftmax(3, annealing=Annealing(**RELEASED))
    again.finish()
    assert again.annealing == last


def test_a_given_weight_stays():
    loss = LargeMarginSoftmax(3, annealing=7.0)
    loss.before_step(5, 10)
    loss.finish()
    assert loss.annealing == 7.0


def test_settings_of_the_annealing_are_checked():
    for settings in ({"gamma": 1e-5}, {**RELEASED, "slope": 1.0}):
        with pytest.raises(ConfigError, match=r"knows gamma, least, steps, start, pow"):
            LargeMarginSoftmax(3, annealing=settings)
