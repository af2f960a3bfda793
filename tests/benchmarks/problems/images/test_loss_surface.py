"""Loss surfaces: directions with the norms of filters, and a grid of losses."""

import copy

import pytest
import torch
from torch import nn

from benchmarks.problems.images.course import LOOKS
from benchmarks.problems.images.loss_surface import filter_normalised, loss_surface
from benchmarks.runs.notes import SURFACE_SIDE, SURFACES
from metricopt.process.seeding import make_generator
from tests.benchmarks.problems.pipeline_cases import smoke_pipeline


def network():
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(3 * 36, 4))


def test_every_filter_of_a_direction_has_the_norm_of_its_own():
    own = network()
    direction = filter_normalised(own, make_generator("direction"))
    for weight, along in zip(own.parameters(), direction, strict=True):
        assert along.shape == weight.shape
        if weight.ndim < 2:
            assert torch.equal(along, torch.zeros_like(weight))
        else:
            norms = along.flatten(1).norm(dim=1), weight.flatten(1).norm(dim=1)
            assert torch.allclose(*norms)
            assert not torch.allclose(along, weight)


def test_the_middle_of_a_surface_is_the_loss_of_the_network():
    own, generator = network(), make_generator("surface")
    inputs, targets = torch.randn(20, 1, 8, 8), torch.randint(4, (20,))
    before = copy.deepcopy(own.state_dict())
    surface = loss_surface(own, inputs, targets, generator, side=5)
    assert surface.shape == (5, 5)
    with torch.no_grad():
        loss = nn.functional.cross_entropy(own.eval()(inputs), targets)
    assert surface[2, 2].item() == pytest.approx(loss.item())
    assert all(
        torch.equal(value, before[name]) for name, value in own.state_dict().items()
    )


def test_the_edge_of_a_surface_is_a_whole_direction_away():
    own, inputs = network().eval(), torch.randn(20, 1, 8, 8)
    targets = torch.randint(4, (20,))
    surface = loss_surface(own, inputs, targets, make_generator("surface"), side=3)
    generator = make_generator("surface")
    one, other = (filter_normalised(own, generator) for _ in range(2))
    with torch.no_grad():
        for weight, first, second in zip(own.parameters(), one, other, strict=True):
            weight += first - second
        loss = nn.functional.cross_entropy(own(inputs), targets)
    assert surface[2, 0].item() == pytest.approx(loss.item(), rel=1e-5)


def test_trainings_note_their_surfaces():
    spec = smoke_pipeline("ala-figs", "ala").theta_spec
    facts = spec.trained_here().facts
    looks = min(LOOKS, spec.recipe.epochs)
    assert len(facts["notes"][SURFACES]) == looks * SURFACE_SIDE**2
    assert len(facts["notes"]["course_train_unlikely"]) == spec.recipe.epochs
    other = smoke_pipeline("ala-figs", "ala-loss").theta_spec
    assert SURFACES not in other.trained_here().facts["notes"]
