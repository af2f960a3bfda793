"""Beside Algorithm 1: does a value function rank phi as the true metric does?

If it does not, MetricOpt would follow noise. Trajectories along the loss and guided
ones are judged apart: a rank correlation over both would measure the gap between them,
which is the easiest thing to predict and helps no step.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.algorithm1.trajectories import GUIDED, KINDS, LOSS, Kind, Trajectories
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.ranking import rank_correlation

TRUSTED, DOUBTFUL = 0.8, 0.5
WORDED: dict[Kind, str] = {LOSS: "along the loss", GUIDED: "along guided steps"}


@dataclass(frozen=True)
class Health:
    """Agreement of predicted and observed costs on held-out trajectories of one kind.

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


def check_health(value_function: ValueFunction, held_out: Trajectories) -> Health:
    """Compare a value function with the observations of trajectories it never saw.

    It is in evaluation mode; the trajectories are of one kind.
    """
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


def health_notes(kind: Kind, health: Health) -> dict[str, float]:
    """Return the figures of one kind as notes of a result; `verdict` reads them."""
    return {
        f"spearman_{kind}": health.spearman,
        f"value_error_{kind}": health.error,
        f"health_spread_{kind}": health.spread,
    }


def verdict(notes: Mapping[str, float]) -> str | None:
    """Return a plain sentence: whether to trust the value function, and why.

    It is trusted as far as it ranks the kind of trajectory that it ranks worse. None if
    the notes of a result have no figures of health.
    """
    kinds = [kind for kind in KINDS if f"spearman_{kind}" in notes]
    if not kinds:
        return None
    figures = "; ".join(
        f"{WORDED[kind]} its rank correlation is {notes[f'spearman_{kind}']:.2f} and "
        f"its mean error {notes[f'value_error_{kind}']:.4f}, where the observed cost "
        f"varies by {notes[f'health_spread_{kind}']:.4f}"
        for kind in kinds
    )
    # NaN reaches no threshold.
    reached = [notes[f"spearman_{kind}"] for kind in kinds]
    if all(spearman >= TRUSTED for spearman in reached):
        return f"Trust it: {figures}."
    if all(spearman >= DOUBTFUL for spearman in reached):
        return f"Use with care: {figures}."
    return (
        f"Do not trust it: {figures}. Train on more tasks, or the metric hardly moves "
        "along fine-tuning."
    )
