"""The surrogate of heat maps: hand-worked cases, and how it is fitted."""

import math

import pytest
import torch

from baselines.learned_losses.reloss_surrogate import (
    Fitting,
    fit_surrogate,
    gradient_penalty,
)
from baselines.learned_losses.surrogates.contract import KINDS, Groups
from baselines.learned_losses.surrogates.poses import Poses, PoseSurrogate
from metricopt.errors import DataError, ShapeError
from metricopt.metrics.poses import CorrectKeypoints
from metricopt.process.seeding import make_generator
from metricopt.structured.poses import pack_poses, target_maps
from tests.baselines.learned_losses.surrogates.group_costs import costs_by
from tests.metricopt.metrics.test_poses import people


def two_joints(known=(1.0, 1.0)):
    """A pose with joints in cells (0, 0) and (1, 1) of maps of 2 x 2 cells."""
    joints = torch.tensor([[[0.0, 0.0, known[0]], [1.0, 1.0, known[1]]]])
    return pack_poses(joints, torch.ones(1), torch.ones(1))


def worked(anchored=False):
    """A surrogate whose weight is sigmoid(ELU(-e_1 + 2 e_4))."""
    surrogate = PoseSurrogate(4, unit=0.5, width=1, anchored=anchored)
    with torch.no_grad():
        surrogate.hidden.weight.copy_(torch.tensor([[-1.0, 0.0, 0.0, 2.0]]))
        surrogate.hidden.bias.zero_()
        surrogate.last.weight.fill_(1.0)
        surrogate.last.bias.zero_()
    return surrogate


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


@pytest.mark.parametrize("anchored", [False, True])
def test_the_loss_is_worked_by_hand(anchored):
    poses = two_joints()
    wanted, _ = target_maps(poses, 2, 2)
    maps = wanted.clone()
    maps[0, 0, 0, 0] += 1.0  # e_1 = 1 / 0.5 of the first joint
    maps[0, 1, 1, 1] -= 0.5  # e_4 = .25 / 0.5 of the second
    first = sigmoid(2.0 if anchored else math.exp(-2) - 1) * 2.0
    second = sigmoid(2 * 0.5) * 0.5
    loss = worked(anchored)(maps[None], poses[None])
    # A mean over 2 joints of 4 cells.
    assert loss.item() == pytest.approx((first + second) / 8, abs=1e-6)


def test_joints_without_a_label_add_nothing():
    poses = two_joints(known=(0.0, 1.0))
    maps, _ = target_maps(poses, 2, 2)
    maps[0, 0] = 7.0
    assert worked()(maps[None], poses[None]).item() == 0


def test_an_anchored_loss_rises_with_every_error():
    surrogate = PoseSurrogate(4, anchored=True)
    errors = torch.rand(50, 4, generator=make_generator("e")).requires_grad_()
    value = (surrogate.weights(errors) * errors).sum()
    (slope,) = torch.autograd.grad(value, errors)
    assert (slope >= 0).all()
    # Without signs the one worked by hand falls as the first error grows.
    low, high = (torch.tensor([[e, 0.0, 0.0, 0.0]]) for e in (1.0, 1.01))
    assert worked().weights(high).item() < worked().weights(low).item()


def recorded(count=240):
    """Maps that become better with time."""
    maps, poses = people(count)
    wanted, _ = target_maps(poses, 24, 18)
    share = torch.linspace(1, 0, count)[:, None, None, None]
    return Groups((wanted + share * (maps[1] - wanted)).half(), poses)


def fitted(**settings):
    torch.manual_seed(0)
    usual = {"epochs": 6, "groups": 8, "group_size": 6, "held_out": 24}
    fitting = Fitting(penalty=0.01, unit_slope=True, **usual, **settings)
    return fit_surrogate(
        Poses(),
        recorded(),
        costs_by(CorrectKeypoints()),
        fitting,
        make_generator("fit"),
    )


@pytest.mark.parametrize("per_example", [False, True])
@pytest.mark.parametrize("anchored", [False, True])
def test_a_surrogate_learns_to_rank_groups_of_poses(anchored, per_example):
    found = fitted(anchored=anchored, per_example=per_example)
    cost, _, base = found.held_out
    assert cost.std() > 0.1 and base.min() > 0
    assert found.rank_correlation == max(found.course) > 0.8
    assert len(found.course) == 6
    assert not any(weight.requires_grad for weight in found.surrogate.parameters())


def test_by_regression_losses_are_nearer_to_costs():
    far = [
        (found.held_out[0] - found.held_out[1]).square().mean()
        for found in (fitted(objective="regression"), fitted())
    ]
    assert far[0] < 0.5 * far[1]


def test_half_of_the_groups_are_of_one_time():
    given = recorded(64)
    places = torch.randperm(64, generator=make_generator("places"))
    order = torch.arange(64.0)[:, None].expand(64, 3)
    groups = Poses().groups(
        Groups(given.outputs, order), places, 8, make_generator("g")
    )
    assert groups.outputs.shape == (8, 8, 17, 24, 18)
    assert groups.outputs.dtype == torch.float32
    times = groups.targets[..., 0]
    assert (times[:4].flatten().diff() > 0).all()
    assert not (times[4:].flatten().diff() > 0).all()


def test_the_penalty_of_an_example_asks_for_slope_one():
    groups = Poses().groups(recorded(16), torch.arange(16), 8, make_generator("g"))
    surrogate = PoseSurrogate(24 * 18)
    outputs = groups.outputs.requires_grad_()
    losses = surrogate(outputs, groups.targets)
    (gradient,) = torch.autograd.grad(losses.sum(), outputs)
    norms = gradient.flatten(2).norm(dim=-1)
    for per_example, factor in ((False, 1), (True, 8)):
        _, penalty = gradient_penalty(surrogate, groups, per_example=per_example)
        expected = (factor * norms - 1).square().mean().item()
        assert penalty.item() == pytest.approx(expected, rel=1e-5)


def test_other_outputs_are_refused_before_training():
    kind, (maps, poses) = KINDS.get("poses")(), people()
    kind.check(maps[0], poses)
    with pytest.raises(ShapeError, match="of the 17 joints of the poses, got 16"):
        kind.check(maps[0, :, 1:], poses)
    with pytest.raises(ShapeError, match=r"heat maps \[N, J, H, W\], got \[3, 4\]"):
        kind.check(torch.zeros(3, 4), poses)
    with pytest.raises(DataError, match="needs packed poses"):
        kind.check(maps[0], torch.zeros(30))
    with pytest.raises(ShapeError, match="maps of 9 cells, got"):
        PoseSurrogate(9)(maps[0], poses)
