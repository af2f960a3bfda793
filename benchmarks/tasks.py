"""Bind data set, backbone, loss and metric to a task, from the settings of a spec.

The protocol of the UCI tables: random 70/10/20 split, features standardised with the
train split's statistics, an MLP trained with cross-entropy, and dynamic input biases.
"""

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from baselines.losses import LOSSES
from baselines.network_method import Recipe, Schedule, fit
from benchmarks.artifacts import Artifact, get_or_make
from benchmarks.backbones import deployed, initialise, mlp, state_of
from benchmarks.datasets import find_source
from benchmarks.datasets.base import Dataset
from benchmarks.records import canonical
from metricopt.adapters import DynamicBias
from metricopt.errors import ConfigError, DataError
from metricopt.metrics import make_metric
from metricopt.metrics.base import Metric
from metricopt.network_task import Judge, NetworkTask, judge_on
from metricopt.sampling import BalancedSampler, NaturalSampler, Sampler, Split
from metricopt.seeding import derive_seed, make_generator
from metricopt.trajectories import Rollout, select_rate


@dataclass(frozen=True)
class Splits:
    """A binary problem, split and standardised.

    Attributes:
        train, observe, test: the three splits.
        variant: label of the data set it comes from.
        digest: sha256 of its decoded arrays.
    """

    train: Split
    observe: Split
    test: Split
    variant: str
    digest: str


@lru_cache(maxsize=2)
def load_dataset(name: str, variant: str, offline: bool) -> Dataset:
    """Return a data set; the last two stay in memory."""
    return find_source(name).load(variant=variant, offline=offline)


def resolve_variant(name: str, *, offline: bool) -> str:
    """Return the variant of a data set that a run uses here, downloaded if need be."""
    source = find_source(name)
    for status in source.status():
        if status.state != "missing":
            return status.variant.name
    return source.load(offline=offline).variant


def load_splits(problem: dict[str, Any], replicate: int) -> Splits:
    """Return the splits of a problem for one replicate.

    Args:
        problem: `dataset`, `variant`, `positive` (classes that count as 1) and
            `max_examples` (None for all).
        replicate: decides the random split.

    Raises:
        DataError: if a split has one class only.
    """
    data = load_dataset(problem["dataset"], problem["variant"], True)
    targets = torch.isin(data.targets, torch.tensor(problem["positive"])).long()
    generator = make_generator("split", problem["dataset"], replicate)
    order = torch.randperm(len(targets), generator=generator)
    order = order[: problem["max_examples"]]
    ends = [int(len(order) * share) for share in (0.7, 0.8)]
    parts = order.tensor_split(ends)
    inputs = data.inputs.flatten(1)
    centre, scale = standardisation(inputs[parts[0]])
    splits = [Split((inputs[part] - centre) / scale, targets[part]) for part in parts]
    for name, split in zip(("train", "observe", "test"), splits, strict=True):
        if len(split.targets.unique()) < 2:
            raise DataError(
                f"the {name} split of {data.label} holds one class only; expected "
                f"examples of classes {problem['positive']} and of others"
            )
    return Splits(*splits, data.label, data.digest)


def standardisation(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return centre and scale of every feature [N, F]; 0/1 features stay as they are.

    A rare indicator, divided by its deviation, would dominate all other inputs.
    """
    binary = ((inputs == 0) | (inputs == 1)).all(0)
    centre = torch.where(binary, 0.0, inputs.mean(0))
    scale = torch.where(binary, 1.0, inputs.std(0).clamp_min(1e-6))
    return centre, scale


class Bench:
    """One problem, sampling and replicate: splits, theta, adapter, and tasks on it.

    Args:
        settings: the part of a spec's settings that all its rows share: `problem`,
            `sampling`, `backbone`, `adapter`, `finetune` and `revision`.
        replicate: decides split, theta, adapter and batches.
    """

    def __init__(self, settings: dict[str, Any], replicate: int) -> None:
        self.settings = settings
        self.replicate = replicate
        self.splits = load_splits(settings["problem"], replicate)
        self.key = {
            **settings,
            "data": self.splits.digest,
            "replicate": replicate,
        }
        self._rates: dict[str, float] = {}

    def seed(self, *names: object) -> int:
        """Return the seed of a purpose, different for every bench."""
        problem = self.settings["problem"]
        sampling = self.settings["sampling"]
        place = (problem["dataset"], problem["positive"], sampling, self.replicate)
        return derive_seed(*place, *names)

    def generator(self, *names: object) -> torch.Generator:
        """Return a generator for a purpose."""
        return torch.Generator().manual_seed(self.seed(*names))

    @property
    def balanced(self) -> bool:
        """Whether mini-batches are class-balanced."""
        return bool(self.settings["sampling"] == "balanced")

    def fresh_network(self) -> nn.Sequential:
        """Return the backbone with random weights."""
        backbone = self.settings["backbone"]
        network = mlp(
            self.splits.train.inputs.shape[1],
            tuple(backbone["hidden"]),
            slope=backbone["slope"],
            dropout=backbone["dropout"],
        )
        initialise(network, self.seed("theta"))
        return network

    def schedule(self, **changes: Any) -> Schedule:
        """Return the backbone's training schedule, with changes."""
        names = ("epochs", "batch_size", "learning_rate")
        schedule = {name: self.settings["backbone"][name] for name in names}
        return Schedule(**schedule | changes, balanced=self.balanced)

    @cached_property
    def theta(self) -> nn.Sequential:
        """The network trained with cross-entropy."""
        network = self.fresh_network()

        def train() -> Artifact:
            recipe = Recipe(LOSSES.get("cross-entropy"), self.schedule())
            best = fit(
                network,
                self.splits.train,
                self.splits.observe,
                recipe=recipe,
                generator=self.generator("pre-training"),
            )
            return Artifact(state_of(network), {"epoch": best.epoch})

        network.load_state_dict(get_or_make("theta", self.key, train).tensors)
        return network.eval()

    @cached_property
    def adapter(self) -> DynamicBias:
        """The dynamic biases of the deployed theta."""
        return DynamicBias(
            deployed(self.theta),
            size=self.settings["adapter"]["size"],
            seed=self.seed("adapter"),
            example_input=self.splits.train.inputs[:64],
        )

    def task(self, metric: Metric) -> NetworkTask:
        """Return a task with its own query counter."""
        return NetworkTask(
            self.adapter,
            nn.BCEWithLogitsLoss(),
            metric,
            train=self.splits.train,
            observe=self.splits.observe,
            sampler=self._sampler(),
        )

    def judge(self, metric: Metric) -> Judge:
        """Return the judge on the test split; for the runner alone."""
        return judge_on(self.adapter, metric, self.splits.test)

    def rate(self, task: NetworkTask, optimizer: str, rollout: Rollout) -> float:
        """Return the loss optimizer's learning rate, selected by the train loss."""
        if optimizer not in self._rates:
            generator = self.generator("rate", optimizer)
            self._rates[optimizer] = select_rate(task, optimizer, rollout, generator)
        return self._rates[optimizer]

    def _sampler(self) -> Sampler:
        batch_size = self.settings["finetune"]["batch_size"]
        if self.balanced:
            return BalancedSampler(self.splits.train.targets, batch_size)
        return NaturalSampler(len(self.splits.train), batch_size)


@lru_cache(maxsize=1)
def _bench(text: str, replicate: int) -> Bench:
    return Bench(json.loads(text), replicate)


def bench_of(settings: dict[str, Any], replicate: int) -> Bench:
    """Return the bench of a spec's settings; the last one stays in memory."""
    shared = ("problem", "sampling", "backbone", "adapter", "finetune", "revision")
    missing = [name for name in shared if name not in settings]
    if missing:
        raise ConfigError(f"settings lack {', '.join(missing)}")
    return _bench(canonical({name: settings[name] for name in shared}), replicate)


def metric_of(settings: dict[str, Any]) -> Metric:
    """Return the metric a spec names."""
    return make_metric(settings["metric"])
