"""Light optimizers against those of torch."""

import pytest
import torch

from metricopt.process.light_optimizers import LightAdam, LightLBFGS
from tests.metricopt.drawn import seeded


def path(make, **options):
    """What an optimizer makes of the Rosenbrock function in ten steps, [10, 2]."""
    weight = torch.randn(2, generator=seeded(), requires_grad=True)
    optimizer = make([weight], **options)
    found = []

    def cost():
        optimizer.zero_grad()
        first, second = weight
        value = (1 - first) ** 2 + 100 * (second - first**2) ** 2
        value.backward()
        return value

    for _ in range(10):
        optimizer.step(cost)
        found.append(weight.detach().clone())
    return torch.stack(found)


@pytest.mark.parametrize(
    ("light", "other", "options"),
    [
        (LightAdam, torch.optim.Adam, {"lr": 0.1, "eps": 1e-9}),
        (LightLBFGS, torch.optim.LBFGS, {"line_search_fn": "strong_wolfe"}),
    ],
)
def test_they_take_the_same_steps(light, other, options):
    found = path(light, **options)
    assert torch.equal(found, path(other, **options))
    assert found[0].ne(found[-1]).all()
