"""The surrogate of ReLoss against golden vectors, and how it is fitted."""

import pytest
import torch
from torch import nn

from baselines.learned_losses.reloss_surrogate import (
    Fitting,
    fit_surrogate,
    gradient_penalty,
)
from baselines.learned_losses.surrogates.classes import (
    Classes,
    ClassSurrogate,
    make_groups,
)
from baselines.learned_losses.surrogates.contract import Groups, gathered
from metricopt.errors import DataError
from metricopt.process.seeding import make_generator
from tests.golden import assert_golden, load_golden

GOLDEN = list(load_golden("reloss_classification"))
SMALL = {"epochs": 12, "groups": 16, "group_size": 32}


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_golden(case):
    surrogate = ClassSurrogate(case.settings["hidden_dim"]).double()
    weights = case.inputs["weights"]
    named = dict(surrogate.h.named_parameters())
    with torch.no_grad():
        # The golden layers have the same order under other names.
        for own, given in zip(named.values(), weights.values(), strict=True):
            own.copy_(given)
    logits = case.inputs["logits"][None].requires_grad_()
    groups = Groups(logits, case.inputs["labels"][None])
    loss = surrogate(*groups)
    assert_golden(loss[0], case.expected["loss"], case.tolerance)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert_golden(gradient[0], case.expected["grad_logits"], case.tolerance)
    _, penalty = gradient_penalty(surrogate, groups)
    assert_golden(penalty, case.expected["gradient_penalty"], case.tolerance)
    found = torch.autograd.grad(penalty, list(named.values()), allow_unused=True)
    expected = case.expected["penalty_grad_weights"].values()
    for own, given, weight in zip(found, expected, named.values(), strict=True):
        own = torch.zeros_like(weight) if own is None else own
        assert_golden(own, given, case.tolerance)


@pytest.mark.parametrize("classes", [1, 5])
def test_labels_of_groups_are_right_up_to_a_cut(classes):
    logits = 3 * torch.randn(200 * 20 + 7, classes)
    groups = make_groups(logits, 20, make_generator("g"))
    assert groups.outputs.shape == (200, 20, classes)
    predicted = groups.outputs.argmax(-1)
    if classes == 1:
        predicted = (groups.outputs[..., 0] > 0).long()
    accuracy = (predicted == groups.targets).double().mean(-1)
    chance = 1 / max(2, classes)
    assert accuracy.mean().item() == pytest.approx((1 + chance) / 2, abs=0.07)
    assert accuracy.max() == 1
    assert accuracy.min() < chance + 0.1


def fitted(logits, costs, fitting, generator):
    recorded = Groups(logits, logits.argmax(-1))
    return fit_surrogate(Classes(), recorded, costs, fitting, generator)


def fit_on_labels(logits, labels, fitting):
    """Return what was fitted, and the held-out outputs with their own labels."""
    torch.manual_seed(0)
    recorded, kind = Groups(logits, labels), Classes()
    drawn = []

    def groups(given, places, *more):
        drawn.append(places)
        return Classes.groups(kind, given, places, *more)

    kind.groups = groups
    found = fit_surrogate(kind, recorded, errors, fitting, make_generator("fit"))
    # The first groups are those held out.
    return found, gathered(recorded, drawn[0], fitting.group_size)


def errors(groups):
    return (groups.outputs.argmax(-1) != groups.targets).double().mean(-1)


def test_an_anchored_surrogate_asks_for_all_where_networks_are_seldom_sure():
    """The published one is least at the probability that right answers have there."""
    logits = torch.randn(6_000, 4, generator=make_generator("logits"))
    grid = torch.linspace(-2, 20, 12)
    outputs = torch.stack([grid, *[torch.zeros(12)] * 3], 1)[:, None]
    losses = {}
    for anchored in (False, True):
        torch.manual_seed(0)
        fitting = Fitting(anchored=anchored, **SMALL)
        found = fitted(logits, errors, fitting, make_generator("fit"))
        assert found.rank_correlation > 0.9
        losses[anchored] = found.surrogate(outputs, torch.zeros(12, 1))
    assert (losses[True].diff() <= 1e-6).all()
    assert losses[True][-1].item() == pytest.approx(0, abs=1e-4)
    assert losses[False].argmin() < 8
    assert losses[False][-1] > losses[False].min() + 0.1


@pytest.mark.parametrize("objective", ["correlation", "regression"])
def test_a_surrogate_learns_to_rank_by_the_metric(objective):
    logits = 2 * torch.randn(6_000, 4, generator=make_generator("logits"))
    torch.manual_seed(0)
    fitting = Fitting(objective=objective, penalty=0.1, **SMALL)
    found = fitted(logits, errors, fitting, make_generator("fit"))
    assert len(found.course) == fitting.epochs
    assert found.rank_correlation == max(found.course) > 0.9
    assert found.rank_correlation > found.base


def test_the_unit_slope_is_one():
    logits = 2 * torch.randn(6_000, 4, generator=make_generator("logits"))
    fitting = Fitting(unit_slope=True, **SMALL | {"epochs": 1})
    found = fitted(logits, errors, fitting, make_generator("fit"))
    outputs = logits[:2_000].requires_grad_()
    targets = make_groups(outputs, 500, make_generator("g")).targets.flatten()
    loss = found.surrogate(outputs, targets)
    (gradient,) = torch.autograd.grad(loss, outputs)
    assert gradient.norm(dim=-1).sum().item() == pytest.approx(1, abs=0.1)


def mean_slope(loss, logits, labels):
    """Return the mean norm of an example's gradient, one example after the other."""
    norms = []
    for one, label in zip(logits, labels, strict=True):
        own = one[None].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(own, label[None]), own)
        norms.append(gradient.norm())
    return torch.stack(norms).mean().item()


def test_the_slope_is_that_of_cross_entropy_on_own_labels():
    logits = 2 * torch.randn(1_000, 4, generator=make_generator("logits"))
    labels = torch.randint(4, (1_000,), generator=make_generator("labels"))
    few = {"epochs": 1, "groups": 8, "group_size": 10, "held_out": 20}
    scaled = Fitting(slope_of_base=True, **few)
    found, (outputs, targets) = fit_on_labels(logits, labels, scaled)
    ours, base = (
        mean_slope(loss, outputs.flatten(0, 1), targets.flatten())
        for loss in (found.surrogate, nn.functional.cross_entropy)
    )
    assert ours == pytest.approx(base, rel=1e-5)
    assert found.slope_base == pytest.approx(base, rel=1e-5)
    assert found.slope * found.surrogate.scale.item() == pytest.approx(base, rel=1e-5)
    # Without it the slope is left as it was learned.
    plain, _ = fit_on_labels(logits, labels, Fitting(**few))
    assert plain.surrogate.scale.item() == 1
    assert (plain.slope, plain.slope_base) == (found.slope, found.slope_base)


def test_the_curve_is_the_loss_over_the_probability_of_the_true_class():
    torch.manual_seed(0)
    surrogate = ClassSurrogate(4)
    with torch.no_grad():
        surrogate.scale.fill_(3.0)
    curve = surrogate.noted()["surrogate_curve"]
    assert len(curve) == 101
    for place in (0, 25, 99, 100):
        p = torch.tensor(place / 100)
        one = torch.stack([p, 1 - p]).log().clamp_min(-100)[None]
        expected = surrogate(one, torch.zeros(1)).item()
        assert curve[place] == pytest.approx(expected, rel=1e-4)
        by_hand = 3 * surrogate.h(p[None]).abs().item()
        assert expected == pytest.approx(by_hand, rel=1e-4)


def test_a_metric_that_does_not_vary_is_refused():
    with pytest.raises(DataError, match="same on all 256 held-out groups"):
        fitted(
            torch.randn(3_000, 4),
            lambda groups: torch.zeros(len(groups.targets)),
            Fitting(**SMALL),
            make_generator("fit"),
        )


def test_too_few_logits_are_refused():
    with pytest.raises(DataError, match=r"2 groups of 32 .* got 60 outputs"):
        fitted(torch.randn(60, 4), errors, Fitting(**SMALL), make_generator("f"))
