"""Maps, paths and meta-gradients against the authors' code."""

import pytest
import torch

from metricopt.geometry import Diagonal, Identity, ParameterShapes, mirror_descent
from tests.golden import assert_golden, load_golden
from tests.metricopt.geometry.golden_tasks import golden_loss, golden_map

CASES = {case.name: case for case in load_golden("mirror_map")}
FORWARD = [name for name, case in CASES.items() if "v" in case.inputs]
DUAL = [name for name, case in CASES.items() if "z_0" in case.inputs]
META = [name for name in DUAL if "grad_z_0" in CASES[name].expected]
FIRST = [name for name in META if "first_order_grad_z_0" in CASES[name].expected]


def test_every_case_is_used():
    assert {*FORWARD, *DUAL, "maml_logistic", "meta_sgd_logistic"} == set(CASES)
    assert len(CASES) == 12
    assert FIRST


@pytest.mark.parametrize("name", FORWARD)
def test_a_map_and_its_jacobian_are_the_golden_ones(name):
    case = CASES[name]
    built, _ = golden_map(case)
    flat = built.shapes.flat(case.inputs["z"])
    assert_golden(built(flat), case.expected["phi"], case.tolerance)
    determinant = built.log_det(case.inputs["z"])
    assert_golden(determinant, case.expected["log_abs_det_jacobian"], case.tolerance)
    jacobian, v = torch.func.jacrev(built)(flat), case.inputs["v"]
    assert_golden(jacobian @ v, case.expected["jacobian_times_v"], case.tolerance)
    assert_golden(v @ jacobian, case.expected["v_times_jacobian"], case.tolerance)
    if "jacobian" in case.expected:
        assert_golden(jacobian, case.expected["jacobian"], case.tolerance)
    assert_golden(built.inverse(built(flat)), flat, case.tolerance)


@pytest.mark.parametrize("name", DUAL)
def test_the_dual_iteration_is_the_golden_one(name):
    case = CASES[name]
    built, _ = golden_map(case)
    loss = golden_loss(case, "support")
    steps, rate = case.settings["K"], case.settings["alpha"]
    path = mirror_descent(built, case.inputs["z_0"], loss, steps=steps, rate=rate)
    flat = built.shapes.flat
    z, phi = (torch.stack([flat(p) for p in points]) for points in (path.z, path.phi))
    assert_golden(z, case.expected["z_path"], case.tolerance)
    assert_golden(phi, case.expected["phi_path"], case.tolerance)
    losses = torch.stack([*path.losses, loss(path.phi[-1])])
    assert_golden(losses, case.expected["support_loss"], case.tolerance)


def meta_gradients(case, built, start, weights, order):
    """Query loss after K_meta steps, and its gradients."""
    path = mirror_descent(
        built,
        start,
        golden_loss(case, "support"),
        steps=case.settings["K_meta"],
        rate=case.settings.get("alpha", 1.0),
        order=order,
    )
    value = golden_loss(case, "query")(path.phi[-1])
    return value, torch.autograd.grad(value, weights, materialize_grads=True)


def orders(names, first):
    """Every case in full order, and those with golden values in first order."""
    return [(n, "full") for n in names] + [(n, "first") for n in first]


@pytest.mark.parametrize(("name", "order"), orders(META, FIRST))
def test_meta_gradients_are_the_golden_ones(name, order):
    case = CASES[name]
    built, weights = golden_map(case)
    z_0 = {n: t.requires_grad_() for n, t in case.inputs["z_0"].items()}
    wanted = [*z_0.values(), *weights.values()]
    value, found = meta_gradients(case, built, z_0, wanted, order)
    prefix = "" if order == "full" else "first_order_"
    assert_golden(value, case.expected["query_loss"], case.tolerance)
    at_start = torch.cat([gradient.reshape(-1) for gradient in found[: len(z_0)]])
    assert_golden(at_start, case.expected[f"{prefix}grad_z_0"], case.tolerance)
    expected = case.expected[f"{prefix}grad_map"]
    for key, gradient in zip(weights, found[len(z_0) :], strict=True):
        assert_golden(gradient, expected[key], case.tolerance)


@pytest.mark.parametrize("order", ["full", "first"])
@pytest.mark.parametrize("name", ["maml_logistic", "meta_sgd_logistic"])
def test_maml_and_meta_sgd_are_special_cases(name, order):
    case = CASES[name]
    shapes = ParameterShapes(case.inputs["phi_0"])
    phi_0 = shapes.flat(case.inputs["phi_0"]).requires_grad_()
    built, wanted = Identity(shapes), {"phi_0": phi_0}
    if name == "meta_sgd_logistic":
        built = Diagonal(shapes).double()
        built.log_scale.data = shapes.flat(case.inputs["log_lr"])
        wanted["log_lr"] = built.log_scale
    # The step sizes do not move the start: it is given in phi, as published.
    start = shapes.named(built.inverse(phi_0))
    weights = list(wanted.values())
    value, found = meta_gradients(case, built, start, weights, order)
    assert_golden(value, case.expected["query_loss"], case.tolerance)
    prefix = "" if order == "full" else "first_order_"
    for key, gradient in zip(wanted, found, strict=True):
        assert_golden(gradient, case.expected[f"{prefix}grad_{key}"], case.tolerance)
    support = golden_loss(case, "support")
    rate, steps = case.settings.get("alpha", 1.0), case.settings["K"]
    path = mirror_descent(built, start, support, steps=steps, rate=rate)
    phi = torch.stack([shapes.flat(each) for each in path.phi])
    assert_golden(phi, case.expected["phi_path"], case.tolerance)
    losses = torch.stack([*path.losses, support(path.phi[-1])])
    assert_golden(losses, case.expected["support_loss"], case.tolerance)


def test_released_heads_of_two_modes_are_stuck():
    case = CASES["identity_kronecker_heads_stuck"]
    built, weights = golden_map(case)
    z_0 = case.inputs["z_0"]
    _, found = meta_gradients(case, built, z_0, list(weights.values()), "full")
    moved = {n: bool(g.any()) for n, g in zip(weights, found, strict=True)}
    heads = ("log_scale_head", "shift_head")
    assert not any(moved[f"{h}.t2.mode{mode}"] for h in heads for mode in (0, 1))
    assert not moved["decoder.t2.layer0.mode0"]
    assert all(moved[f"{head}.t3.mode0"] for head in heads)
