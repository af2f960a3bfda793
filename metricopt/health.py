"""The health check of a value function: does it rank phi as the true metric does?

A value function that does not is not to be trusted: MetricOpt would follow noise.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from scipy.stats import spearmanr
from torch import Tensor

from metricopt.observations import Trajectories
from metricopt.value_function import ValueFunction

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
        figures = (
            f"rank correlation {self.spearman:.2f}, mean error {self.error:.4f} where "
            f"the observed cost varies by {self.spread:.4f}"
        )
        if self.spearman >= TRUSTED:
            return f"Trust it: {figures}."
        if self.spearman >= DOUBTFUL:
            return f"Use with care: {figures}."
        return (
            f"Do not trust it: {figures}. Train on more tasks, or the metric hardly "
            "moves along fine-tuning."
        )


def check_health(value_function: ValueFunction, held_out: Trajectories) -> Health:
    """Compare a value function with the observations of trajectories it never saw."""
    rows = torch.arange(len(held_out))[:, None]
    phi = held_out.phi[rows, held_out.steps].flatten(0, 1)
    with torch.no_grad():
        predicted = value_function(phi).double()
    observed = held_out.costs.flatten()
    constant = min(_deviation(predicted), _deviation(observed)) < 1e-12
    correlation = torch.nan if constant else spearmanr(predicted, observed).statistic
    return Health(
        float(correlation),
        (predicted - observed).abs().mean().item(),
        _deviation(observed),
        predicted,
        observed,
    )


def _deviation(values: Tensor) -> float:
    """Return the standard deviation of values [N]; 0 for a single one."""
    return values.std().item() if len(values) > 1 else 0.0


def draw_health(health: Health, path: Path) -> None:
    """Write a figure of predicted against observed cost, with the sentence above."""
    from matplotlib.figure import Figure

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
