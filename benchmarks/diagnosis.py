"""What is found out about a value function beside its result, outside its budget."""

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from benchmarks.bench import Bench
from metricopt.health import Health, check_health
from metricopt.meta_training import MetaTrained
from metricopt.methods.metricopt import LiteralMetricOpt, MetricOpt
from metricopt.metrics.base import Metric
from metricopt.observations import Trajectories, concatenate
from metricopt.trajectories import collect, loss_optimizer
from metricopt.value_function import ValueFunction

# Held-out trajectories of the health check, half of them guided, and their queries.
HEALTH_TRAJECTORIES, HEALTH_OBSERVATIONS = 20, 10
DIGITS = 6
"""Decimals kept of metric values in records."""
STRETCHES = 10
"""Parts of a trajectory over which loss and cost are averaged for Fig. 1."""


def diagnose(
    method: MetricOpt | LiteralMetricOpt,
    trained: MetaTrained,
    bench: Bench,
    metric: Metric,
) -> dict[str, Any]:
    """Check a value function on held-out trajectories of a bench.

    Args:
        method: what trained it.
        trained: the value function.
        bench: where; replicate 0 also gives the points of figures.
        metric: what it predicts.

    Returns:
        Notes of a record: its rank correlations and error, and that of the loss with
        the metric along loss fine-tuning.
    """
    task = bench.task(metric)
    generator = bench.generator("health", metric.name)
    rollout = dataclasses.replace(
        method.recipe.rollout, observations=HEALTH_OBSERVATIONS
    )
    rows = HEALTH_TRAJECTORIES // 2
    loss = loss_optimizer("sgd", method.rate or 0.1)
    follower, step = MetricOpt(), method.recipe.step_share
    guided = follower.guided(trained, rollout.steps, generator, step=step)
    parts = [
        collect(task, factory, rollout, rows=rows, generator=generator)
        for factory in (loss, guided)
    ]
    on_loss, on_guided = (check_health(trained.value_function, part) for part in parts)
    both = check_health(trained.value_function, concatenate(parts))
    notes: dict[str, Any] = {
        "spearman": both.spearman,
        "spearman_loss": on_loss.spearman,
        "spearman_guided": on_guided.spearman,
        "value_error": both.error,
        "loss_spearman": loss_spearman(bench, parts[0]),
    }
    if bench.replicate == 0:
        notes |= _paths(*parts)
        notes |= _pictures(both, trained.value_function, concatenate(parts), metric)
    return notes


def loss_spearman(bench: Bench, along: Trajectories) -> float:
    """Return the rank correlation of training loss and cost along trajectories.

    Near 1 the loss serves the metric, and there is little left to gain; NaN where
    the metric does not move.
    """
    from scipy.stats import spearmanr

    losses, costs = bench.train_loss(observed_phi(along)), along.costs.flatten()
    if costs.min() == costs.max():
        return math.nan
    return round(float(spearmanr(losses.cpu(), costs).statistic), 4)


def observed_phi(trajectories: Trajectories) -> Tensor:
    """Return phi where the metric was observed, shape [B * K, d]."""
    rows = torch.arange(len(trajectories))[:, None]
    return trajectories.phi[rows, trajectories.steps].flatten(0, 1)


def _paths(on_loss: Trajectories, on_guided: Trajectories) -> dict[str, list[float]]:
    """Return loss and cost along fine-tuning, with and without guidance: Fig. 1."""
    steps = on_loss.losses.shape[1]
    edges = torch.linspace(0, steps, STRETCHES + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    found = {"path_steps": rounded(middles, 1)}
    for kind, part in (("loss", on_loss), ("guided", on_guided)):
        stretch = (part.steps * STRETCHES) // steps
        costs = torch.zeros(STRETCHES, dtype=torch.float64)
        counts = torch.zeros(STRETCHES, dtype=torch.float64)
        costs.index_add_(0, stretch.flatten(), part.costs.flatten().double())
        counts.index_add_(0, stretch.flatten(), torch.ones(stretch.numel()).double())
        losses = torch.nn.functional.adaptive_avg_pool1d(
            part.losses.mean(0)[None], STRETCHES
        )
        found[f"path_{kind}_loss"] = rounded(losses[0])
        # NaN, which records keep as none, where a stretch was never observed.
        found[f"path_{kind}_cost"] = rounded(costs / counts)
    return found


def _pictures(
    health: Health,
    value_function: ValueFunction,
    held_out: Trajectories,
    metric: Metric,
) -> dict[str, list[float]]:
    """Return the points of Fig. 2c and of predicted against true metric."""
    with torch.no_grad():
        embedding = value_function.embed(observed_phi(held_out)).numpy()
    # Imported here: it takes seconds, and few runs draw.
    from sklearn.manifold import TSNE

    place = TSNE(random_state=0, init="pca", n_jobs=1).fit_transform(embedding)
    return {
        "health_predicted": rounded(health.predicted, 4),
        "health_true": rounded(health.observed, 4),
        "embedding_x": rounded(torch.from_numpy(place[:, 0]), 2),
        "embedding_y": rounded(torch.from_numpy(place[:, 1]), 2),
        "embedding_cost": rounded(health.observed, 4),
    }


def rounded(values: Tensor, digits: int = DIGITS) -> list[float]:
    """Return numbers as records keep them."""
    return [round(value, digits) for value in values.tolist()]
