"""A phi method that meta-trains, a network method, and an arm of a kind of its own."""

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from baselines.network_methods.contract import (
    Assignment,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.prediction import predict_examples
from benchmarks.problems.choices import Chosen, Point, Shifted
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError
from metricopt.methods.contract import Method, Preparation
from metricopt.methods.result import best_so_far
from metricopt.metrics.base import Metric
from metricopt.reading.outputs import Outputs, each, leading


@dataclass(frozen=True)
class RidgeDescent(Method):
    """Fits a linear cost to queried phi once, then walks down its slope.

    Attributes:
        points: phi queried in the preparation.
        deviation: of their coordinates.
        penalty: of the squared slope.
        steps: down the slope, each queried.
        length: of the whole walk.
    """

    points: int = 40
    deviation: float = 0.3
    penalty: float = 1.0
    steps: int = 20
    length: float = 3.0

    def preparation_key(self, budget):
        """Return what decides the slope: not the walk."""
        if self.points + self.steps + 1 > budget.queries:
            raise ConfigError(f"{budget.queries} queries are too few for this walk")
        return {"points": self.points, "spread": self.deviation, "ridge": self.penalty}

    def prepare(self, task, budget, generator, *, progress=None):
        """Query some phi and fit the slope of their costs."""
        phi = self.deviation * torch.randn(self.points, task.size, generator=generator)
        costs = task.observe(phi).to(phi)
        gram = phi.T @ phi + self.penalty * torch.eye(task.size)
        slope = torch.linalg.solve(gram, phi.T @ (costs - costs.mean()))
        return Preparation(self.points, {"slope": slope}, {"cost": float(costs.mean())})

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        """Walk from a start of each row's own, and keep the best phi on the way."""
        if prepared is None:
            prepared = self.prepare(task, budget, generator)
        down = -nn.functional.normalize(prepared.tensors["slope"], dim=0)
        starts = 0.01 * torch.randn(rows, 1, task.size, generator=generator)
        lengths = torch.linspace(0, self.length, self.steps + 1)
        path = starts + lengths[None, :, None] * down
        walk = best_so_far(path, task.observe(path.flatten(0, 1)).view(rows, -1))
        shared = prepared.queries
        return replace(
            walk,
            queries=walk.queries + shared,
            shared_queries=shared,
            checkpoints=tuple(
                replace(point, queries=point.queries + shared)
                for point in walk.checkpoints
            ),
        )


@dataclass(frozen=True, kw_only=True)
class MetricSelected(NetworkMethod):
    """Trains with cross-entropy and keeps the epoch that observes best: one query each.

    Attributes:
        smoothing: of the labels.
    """

    smoothing: float = 0.0

    def check_suits(self, outputs: Outputs, targets: Tensor) -> None:
        """Check for logits, alone or as the first of several outputs."""
        super().check_suits(leading(outputs), targets)

    def _train(self, given: Assignment) -> NetworkResult:
        def loss(outputs: Outputs, targets: Tensor) -> Tensor:
            logits = leading(outputs)
            return nn.functional.cross_entropy(
                logits, targets, label_smoothing=self.smoothing
            )

        def score(network: nn.Module) -> float:
            outputs = predict_examples(network, given.validation.observe)
            rows = each(lambda part: part[None], outputs)
            return given.validation.costs(rows).item()

        network = copy.deepcopy(given.network)
        training = replace(given.training, keep_best=True)
        run = given.trained(network, loss, score, training)
        return given.result(network, run.steps, {"best_epoch": run.best.epoch})


@dataclass(frozen=True)
class Stretch:
    """What is done to the outputs (logits, embedding) after the network."""

    factors: Tensor

    def shift(self, outputs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the outputs with every number of the embedding times its factor."""
        logits, embedding = outputs
        return logits, embedding * self.factors


def stretch_embedding(
    spec: RunSpec, pipeline: NetworkPipeline, metric: Metric
) -> Chosen:
    """Search factors of the embedding at random, and keep those that observe best."""
    count = spec.budget.queries
    validation = pipeline.validation(metric, count)
    logits, embedding = pipeline.outputs()
    generator = pipeline.seeds.generator("stretch", spec.metric.label)
    noise = torch.randn(count, embedding.shape[1], generator=generator)
    factors = noise.exp().index_fill(0, torch.tensor(0), 1.0)
    rows = logits.expand(count, -1, -1), embedding * factors[:, None]
    values = validation.values(rows)
    costs = validation.as_costs(values)
    points = []
    for queries in sorted({1, 10, 30, count}):
        best = int(costs[:queries].argmin())
        observed = (values[best].item(),)
        points.append(
            Point(0, queries, observed, Shifted(Stretch(factors[best]).shift))
        )
    return Chosen(
        points[-1].choice,
        queries=count,
        evaluations=dict(validation.meter.made),
        points=tuple(points),
    )
