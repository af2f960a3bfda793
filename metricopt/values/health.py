"""The health check of a value function: does it rank phi as the true metric does?

If it does not, MetricOpt would follow noise.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.ranking import rank_correlation
from metricopt.values.trajectories import Trajectories
from metricopt.values.value_function import ValueFunction

TRUSTED, DOUBTFUL = 0.8, 0.5


@dataclass(frozen=True)
class Health:
    """Agreement of predicted and observed costs on held-out trajectories.

    Attributes:
        spearman: rank correlation in [-1, 1]; NaN where either side is constant.
        error: mean absolute error, in units of cost.
        spread: standard deviation of the observed costs.
        predicted: predicted costs, shape [N].
        observed: observed costs, shape [N].
    """

    spearman: float
    error: float
    spread: float
    predicted: Tensor
    observed: Tensor

    @property
    def sentence(self) -> str:
        """A plain sentence: whether to trust the value function, and why."""
        return verdict(self.spearman, self.error, self.spread)


def verdict(spearman: float, error: float, spread: float) -> str:
    """Return the sentence of a `Health` with these figures."""
    figures = (
        f"rank correlation {spearman:.2f}, mean error {error:.4f} where the observed "
        f"cost varies by {spread:.4f}"
    )
    if spearman >= TRUSTED:
        return f"Trust it: {figures}."
    if spearman >= DOUBTFUL:
        return f"Use with care: {figures}."
    return (
        f"Do not trust it: {figures}. Train on more tasks, or the metric hardly moves "
        "along fine-tuning."
    )


def check_health(value_function: ValueFunction, held_out: Trajectories) -> Health:
    """Compare a value function with the observations of trajectories it never saw."""
    rows = torch.arange(len(held_out))[:, None]
    phi = held_out.phi[rows, held_out.steps].flatten(0, 1)
    with torch.no_grad():
        predicted = value_function(phi).double()
    observed = held_out.costs.flatten()
    return Health(
        rank_correlation(predicted, observed),
        (predicted - observed).abs().mean().item(),
        observed.std().item() if len(observed) > 1 else 0.0,
        predicted,
        observed,
    )


def draw_health(health: Health, path: Path) -> None:
    """Write a figure of predicted against observed cost.

    Raises:
        ConfigError: if matplotlib, which the extra `plot` installs, is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError(
            "figures need matplotlib: pip install 'metricopt[plot]'"
        ) from error

    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.scatter(health.observed, health.predicted, s=10, alpha=0.6)
    ends = [health.observed.min().item(), health.observed.max().item()]
    axes.plot(ends, ends, color="black", linewidth=1, label="predicted = observed")
    axes.set_xlabel("observed cost (lower is better)")
    axes.set_ylabel("cost predicted by the value function")
    axes.set_title(f"Spearman {health.spearman:.2f}, error {health.error:.4f}")
    axes.legend()
    figure.savefig(path, dpi=110)
