"""Tabular problems: an MLP with dynamic input biases on a binary problem.

Random 70/10/20 split, features standardised with the train split's statistics, an MLP
trained with cross-entropy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn

from baselines.losses.contract import LOSSES
from baselines.post_hoc.prior_correction import uniform_shares
from baselines.training.batches import Batches, SampledBatches
from baselines.training.loop import TrainingRun, train
from baselines.training.optimization import Training
from benchmarks.data.registry import load_dataset, variant_shape
from benchmarks.networks.mlp import deployed, mlp
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.problems.pretrained.base_weights import restore
from benchmarks.problems.splits import Splits
from benchmarks.runs.artifacts import Artifact, get_or_make
from benchmarks.runs.codec import changed, later
from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.errors import DataError
from metricopt.metrics.confusion import class_shares
from metricopt.process.seeding import Seeds, make_generator
from metricopt.tasks.sampling import BalancedSampler, NaturalSampler, Sampler, Split

SPLIT_ENDS = (0.7, 0.8)
"""Where train and observe end, as shares of all examples in random order."""
KEPT = "the kept network, which `./reproduce.sh cache clear theta` removes,"


def split_ends(examples: int) -> list[int]:
    """Return where train and observe end among so many examples in random order."""
    return [int(examples * share) for share in SPLIT_ENDS]


@dataclass(frozen=True)
class BinaryProblem:
    """A binary problem made of a data set.

    Attributes:
        dataset: name of the data set.
        variant: variant of the data set.
        positive: classes that count as positive.
        max_examples: examples used, splits included; None for all.
    """

    dataset: str
    variant: str
    positive: tuple[int, ...]
    max_examples: int | None = None

    @property
    def test_per_train(self) -> float:
        """Examples tested on per example trained on, in the random splits."""
        learned, observed = SPLIT_ENDS
        return (1 - observed) / learned

    @property
    def observed(self) -> int:
        """Examples of the observe split."""
        used, *_ = variant_shape(self.dataset, self.variant)
        learned, observed = split_ends(min(used, self.max_examples or used))
        return observed - learned


@dataclass(frozen=True)
class MLPBackbone:
    """An MLP and how it is trained, by Adam.

    Attributes:
        epochs: length of training, with the best epoch kept.
        batch_size: examples in one mini-batch of training.
        learning_rate: greatest rate.
        hidden: widths of the hidden layers.
        slope: slope of the leaky ReLU.
        dropout: probability of dropping a unit.
    """

    epochs: int
    batch_size: int
    learning_rate: float = 5e-3
    hidden: tuple[int, ...] = (100, 30, 10)
    slope: float = 0.01
    dropout: float = 0.2


@dataclass(frozen=True)
class BiasSettings:
    """The adapter: `size` dynamic input biases; `offsets` stand beside them, or not."""

    size: int = 16
    offsets: bool = later(False)


@dataclass(frozen=True)
class TabularFinetuning:
    """Mini-batches of fine-tuning: `batch_size` examples each."""

    batch_size: int = 64


@dataclass(frozen=True)
class TabularSettings:
    """Everything that decides a tabular pipeline, except its replicate.

    Attributes:
        problem: the data.
        sampling: `natural` or `balanced` mini-batches.
        backbone: the network.
        revision: raised when code changes numbers, so that no old record is reused.
        adapter: dynamic input biases.
        finetune: mini-batches of fine-tuning.
    """

    problem: BinaryProblem
    sampling: Literal["natural", "balanced"]
    backbone: MLPBackbone
    revision: int
    adapter: BiasSettings = BiasSettings()
    finetune: TabularFinetuning = TabularFinetuning()


def load_splits(problem: BinaryProblem, replicate: int) -> Splits:
    """Return the splits of a problem for one replicate, which decides them.

    Raises:
        DataError: if a split has one class only.
    """
    data = load_dataset(problem.dataset, problem.variant, offline=True)
    targets = torch.isin(data.targets, torch.tensor(problem.positive)).long()
    generator = make_generator("split", problem.dataset, replicate)
    order = torch.randperm(len(targets), generator=generator)
    order = order[: problem.max_examples]
    parts = order.tensor_split(split_ends(len(order)))
    inputs = data.inputs.flatten(1)
    centre, scale = standardisation(inputs[parts[0]])
    splits = [Split((inputs[part] - centre) / scale, targets[part]) for part in parts]
    for name, split in zip(("train", "observe", "test"), splits, strict=True):
        if len(split.targets.unique()) < 2:
            raise DataError(
                f"the {name} split of {data.label} holds one class only; expected "
                f"examples of classes {list(problem.positive)} and of others"
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


@PIPELINES.register("tabular")
class TabularPipeline(NetworkPipeline):
    """A binary problem with its MLP; see `NetworkPipeline`."""

    settings_type = TabularSettings
    settings: TabularSettings
    loss = nn.BCEWithLogitsLoss()

    @cached_property
    def splits(self) -> Splits:
        """The three splits."""
        return load_splits(self.settings.problem, self.replicate)

    @cached_property
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""
        problem, sampling = self.settings.problem, self.settings.sampling
        return Seeds(problem.dataset, list(problem.positive), sampling, self.replicate)

    @property
    def recorded_seeds(self) -> dict[str, int]:
        """Seeds that records name, by purpose."""
        own = {name: self.seeds.seed(name) for name in ("theta", "adapter")}
        return super().recorded_seeds | own

    @property
    def sampler(self) -> Sampler:
        """What draws the mini-batches of fine-tuning."""
        targets, size = self.splits.train.targets, self.settings.finetune.batch_size
        if self.balanced:
            return BalancedSampler(targets, size)
        return NaturalSampler(len(targets), size)

    @property
    def training_shares(self) -> Tensor:
        """Class shares of the mini-batches theta was trained on."""
        if self.balanced:
            return uniform_shares(2)
        return class_shares(self.splits.train.targets, 2)

    @property
    def balanced(self) -> bool:
        """Whether mini-batches are class-balanced."""
        return self.settings.sampling == "balanced"

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the mini-batches a network is trained on."""
        backbone = changed(self.settings.backbone, changes)
        return SampledBatches(
            self.splits.train, backbone.batch_size, balanced=self.balanced
        )

    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a network is trained here, with changes."""
        backbone = changed(self.settings.backbone, changes)
        return Training(epochs=backbone.epochs, learning_rate=backbone.learning_rate)

    def network_start(self, *, from_theta: bool) -> nn.Sequential:
        """Return the trained network, or one with random weights."""
        return self.theta if from_theta else self.fresh_network()

    def fresh_network(self) -> nn.Sequential:
        """Return the MLP with random weights."""
        backbone = self.settings.backbone
        return mlp(
            self.splits.train.batch(slice(1)).shape[1],
            backbone.hidden,
            slope=backbone.slope,
            dropout=backbone.dropout,
            seed=self.seeds.seed("theta"),
        )

    @cached_property
    def theta(self) -> nn.Sequential:
        """The network trained with cross-entropy."""
        network = self.fresh_network()

        def make() -> Artifact:
            best = train(
                TrainingRun(
                    network,
                    LOSSES.get("cross-entropy"),
                    self.batches({}),
                    self.training({}),
                    generator=self.seeds.generator("pre-training"),
                    observe=self.splits.observe,
                )
            )
            return Artifact(dict(network.state_dict()), {"epoch": best.epoch})

        kept = get_or_make("theta", self.key, make).tensors
        restore(network, kept, KEPT)
        return network.eval()

    @cached_property
    def adapter(self) -> NetworkAdapter:
        """The dynamic biases of the deployed theta, with output offsets if wanted."""
        example = self.splits.train.batch(slice(64))
        biases = DynamicBias(
            deployed(self.theta),
            size=self.settings.adapter.size,
            seed=self.seeds.seed("adapter"),
            example_input=example,
        )
        wanted = self.settings.adapter.offsets
        return OutputOffsets(biases, example) if wanted else biases
