"""The diagnosis of a value function on held-out trajectories, outside the budget."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.runs.record import DIGITS
from benchmarks.runs.spec import RunSpec
from metricopt.algorithm1.health import Health, check_health, health_notes
from metricopt.algorithm1.recipe import MetaTrained
from metricopt.algorithm1.step_choice import guided_optimizer
from metricopt.algorithm1.trajectories import (
    GUIDED,
    LOSS,
    Kind,
    Trajectories,
    collect_kinds,
)
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.ranking import rank_correlation
from metricopt.tasks.descent import loss_optimizer, loss_rate

# Held-out trajectories of the health check, half of them guided, and their queries.
HEALTH_TRAJECTORIES, HEALTH_OBSERVATIONS = 20, 10
STRETCHES = 10
"""Parts of a trajectory over which loss and cost are averaged for Fig. 1."""


def diagnose(
    trained: MetaTrained, pipeline: NetworkPipeline, spec: RunSpec
) -> dict[str, Any]:
    """Check a value function on held-out trajectories of a pipeline.

    Its queries are outside the budget of the run.

    Args:
        trained: the value function.
        pipeline: makes the trajectories; replicate 0 also gives the points of figures.
        spec: the run, for the metric and the number of steps.

    Returns:
        Notes of a record: rank correlation and error of the value function on each
        kind of trajectory, and the rank correlation of loss and metric along loss
        fine-tuning.
    """
    metric = pipeline.metric(spec.metric)
    task = pipeline.task(metric)
    generator = pipeline.seeds.generator("health", spec.metric.label)
    recipe = trained.recipe
    rollout = replace(recipe.rollout, observations=HEALTH_OBSERVATIONS)
    rows = HEALTH_TRAJECTORIES // 2
    rate = loss_rate(task, "sgd", spec.budget.gradient_steps)
    guided = guided_optimizer(
        trained, "sgd", rollout.steps, recipe.step_share, generator
    )
    parts = collect_kinds(
        task,
        {LOSS: loss_optimizer("sgd", rate, rollout.steps), GUIDED: guided},
        rollout,
        rows={LOSS: rows, GUIDED: rows},
        generator=generator,
    )
    health = {k: check_health(trained.value_function, p) for k, p in parts.items()}
    notes: dict[str, Any] = {"loss_spearman": loss_spearman(pipeline, parts[LOSS])}
    for kind, found in health.items():
        notes |= health_notes(kind, found)
    if pipeline.replicate == 0:
        notes |= _paths(parts)
        notes |= _pictures(list(health.values()), trained.value_function, parts)
    return notes


def loss_spearman(pipeline: NetworkPipeline, along: Trajectories) -> float:
    """Return the rank correlation of training loss and cost along trajectories.

    Near 1, the loss serves the metric and there is little left to gain. NaN if the
    metric does not change, or the pipeline gives no training loss.
    """
    losses = pipeline.train_loss(observed_phi(along))
    if losses is None:
        return math.nan
    return round(rank_correlation(losses.cpu(), along.costs.flatten()), 4)


def observed_phi(trajectories: Trajectories) -> Tensor:
    """Return phi where the metric was observed, shape [B * K, d]."""
    rows = torch.arange(len(trajectories))[:, None]
    return trajectories.phi[rows, trajectories.steps].flatten(0, 1)


def _paths(parts: Mapping[Kind, Trajectories]) -> dict[str, list[float]]:
    """Return loss and cost along fine-tuning, with and without guidance: Fig. 1."""
    steps = parts[LOSS].losses.shape[1]
    edges = torch.linspace(0, steps, STRETCHES + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    found = {"path_steps": rounded(middles, 1)}
    for kind, part in parts.items():
        stretch = (part.steps * STRETCHES) // steps
        costs = torch.zeros(STRETCHES, dtype=torch.float64)
        counts = torch.zeros(STRETCHES, dtype=torch.float64)
        costs.index_add_(0, stretch.flatten(), part.costs.flatten().double())
        counts.index_add_(0, stretch.flatten(), torch.ones(stretch.numel()).double())
        losses = torch.nn.functional.adaptive_avg_pool1d(
            part.losses.mean(0)[None], STRETCHES
        )
        found[f"path_{kind}_loss"] = rounded(losses[0])
        # NaN, which records keep as None, for a stretch that was never observed.
        found[f"path_{kind}_cost"] = rounded(costs / counts)
    return found


def _pictures(
    health: Sequence[Health],
    value_function: ValueFunction,
    parts: Mapping[Kind, Trajectories],
) -> dict[str, list[float]]:
    """Return the points of Fig. 2c and of predicted against true metric."""
    phi = torch.cat([observed_phi(part) for part in parts.values()])
    observed = torch.cat([found.observed for found in health])
    predicted = torch.cat([found.predicted for found in health])
    with torch.no_grad():
        place = _in_a_plane(value_function.embed(phi))
    return {
        "health_predicted": rounded(predicted, 4),
        "health_true": rounded(observed, 4),
        "embedding_x": rounded(place[:, 0], 2),
        "embedding_y": rounded(place[:, 1], 2),
        "embedding_cost": rounded(observed, 4),
    }


def _in_a_plane(embedding: Tensor) -> Tensor:
    """Return points [n, 2] of an embedding [n, q] by t-SNE."""
    if not bool((embedding != embedding[0]).any()):
        # A dead value function has one point for all phi, at which t-SNE crashes.
        return embedding.new_zeros(len(embedding), 2)
    # Imported here: it takes seconds, and few runs draw.
    from sklearn.manifold import TSNE

    place = TSNE(random_state=0, init="pca", n_jobs=1).fit_transform(embedding.numpy())
    return torch.from_numpy(place)


def rounded(values: Tensor, digits: int = DIGITS) -> list[float]:
    """Return numbers as records keep them."""
    return [round(value, digits) for value in values.tolist()]
