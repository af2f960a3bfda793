"""The health check: rank correlation, error, and a plain sentence."""

import math
import sys

import pytest
import torch
from scipy.stats import spearmanr

from metricopt.errors import ConfigError
from metricopt.values.health import Health, check_health, draw_health
from metricopt.values.trajectories import Trajectories
from metricopt.values.value_function import ValueFunction


class Known(ValueFunction):
    """Predicts what a function says."""

    def __init__(self, function):
        super().__init__(2)
        self.function = function

    def forward(self, phi):
        return self.function(phi)


@pytest.fixture
def held_out():
    """Three trajectories whose cost is the first coordinate of phi."""
    generator = torch.Generator().manual_seed(0)
    phi = torch.rand(3, 10, 2, generator=generator)
    steps = torch.tensor([[0, 4, 9], [1, 2, 3], [5, 6, 7]])
    costs = phi[torch.arange(3)[:, None], steps][..., 0].double()
    return Trajectories(phi, phi[..., 0], steps, costs)


def checked(held_out, function):
    return check_health(Known(function), held_out)


def test_a_value_function_that_knows_the_cost_is_trusted(held_out):
    health = checked(held_out, lambda phi: phi[:, 0])
    assert health.spearman == pytest.approx(1.0)
    assert health.error == pytest.approx(0.0, abs=1e-9)
    torch.testing.assert_close(health.predicted, health.observed)
    assert health.sentence.startswith("Trust it: rank correlation 1.00, mean error 0.0")


def test_figures_equal_their_definitions(held_out):
    health = checked(held_out, lambda phi: phi[:, 0] - phi[:, 1])
    visited = held_out.phi[torch.arange(3)[:, None], held_out.steps].flatten(0, 1)
    predicted = (visited[:, 0] - visited[:, 1]).double()
    observed = held_out.costs.flatten()
    torch.testing.assert_close(health.predicted, predicted)
    assert torch.equal(health.observed, observed)
    expected = spearmanr(predicted.numpy(), observed.numpy()).statistic
    assert health.spearman == pytest.approx(expected)
    assert health.error == pytest.approx((predicted - observed).abs().mean().item())
    assert health.spread == pytest.approx(observed.std().item())


def test_only_ranks_count_for_trust(held_out):
    health = checked(held_out, lambda phi: phi[:, 0].exp() * 10)
    assert health.spearman == pytest.approx(1.0)
    assert health.error > 5


def test_the_reverse_order_is_not_trusted(held_out):
    health = checked(held_out, lambda phi: -phi[:, 0])
    assert health.spearman == pytest.approx(-1.0)
    assert health.sentence.startswith("Do not trust it: rank correlation -1.00")


@pytest.mark.parametrize("constant", ["predicted", "observed"])
def test_constants_have_no_rank_correlation(held_out, constant):
    function = (lambda phi: phi[:, 0] * 0) if constant == "predicted" else None
    if constant == "observed":
        held_out.costs.fill_(0.5)
    health = checked(held_out, function or (lambda phi: phi[:, 0]))
    assert math.isnan(health.spearman)
    assert health.sentence.startswith("Do not trust it: rank correlation nan")
    assert "Train on more tasks" in health.sentence


def test_one_observation_is_too_few_for_a_rank_correlation(held_out):
    single = Trajectories(
        held_out.phi[:1],
        held_out.losses[:1],
        held_out.steps[:1, :1],
        held_out.costs[:1, :1],
    )
    health = checked(single, lambda phi: phi[:, 0])
    assert math.isnan(health.spearman)
    assert health.error == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("spearman", "verdict"),
    [(0.8, "Trust it"), (0.79, "Use with care"), (0.5, "Use with care"), (0.49, "Do")],
)
def test_verdicts(spearman, verdict):
    one = torch.ones(2)
    assert Health(spearman, 0.01, 0.1, one, one).sentence.startswith(verdict)


def test_the_figure_is_a_picture_with_all_points(held_out, tmp_path):
    path = tmp_path / "health.png"
    draw_health(checked(held_out, lambda phi: phi[:, 0]), path)
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_the_extra_is_named(held_out, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    health = checked(held_out, lambda phi: phi[:, 0])
    message = r"figures need matplotlib: pip install 'metricopt\[plot\]'"
    with pytest.raises(ConfigError, match=message):
        draw_health(health, tmp_path / "health.png")
    assert list(tmp_path.iterdir()) == []
