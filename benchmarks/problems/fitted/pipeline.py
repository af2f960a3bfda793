"""A fitted classifier on a table: its outputs are known, and offsets are added to them.

Half of the examples are test, the same half in all replicates; classifier and metric
get a random part each of the others. The network is the identity, as in
`metricopt.tune`, and its adapter is offsets alone, which is what every rival moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from baselines.training.batches import Batches
from baselines.training.optimization import Training
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.fitted.estimators import Estimator, fitted, logits
from benchmarks.problems.fitted.table import GROUP, Table, TableData, load_table
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.problems.splits import Splits
from benchmarks.runs.artifacts import Artifact, get_or_make
from benchmarks.runs.codec import encode
from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.group_offsets import GroupOffsets, ShiftedByGroup
from metricopt.adapters.output_offsets import OutputOffsets, Unmodulated
from metricopt.errors import ConfigError
from metricopt.losses.contract import Loss
from metricopt.metrics.confusion import class_shares
from metricopt.process.seeding import Seeds, make_generator
from metricopt.tasks.sampling import NaturalSampler, Sampler, Split

TRAINED, OBSERVED = 10_000, 2_000
"""Most examples that a classifier is fitted to, and that a metric is queried on."""
BATCH_SIZE = 128


@dataclass(frozen=True)
class FittedSettings:
    """Everything that decides the pipeline of a fitted classifier but its replicate.

    Attributes:
        data: what is predicted.
        estimator: the classifier.
        observed: most examples of the observe split, a sixth of all at most.
        revision: raised when code changes numbers, so that no old record is reused.
    """

    data: TableData
    estimator: Estimator
    observed: int = OBSERVED
    revision: int = 1


@PIPELINES.register("fitted")
class FittedPipeline(NetworkPipeline):
    """A table with a fitted classifier; see `NetworkPipeline`."""

    settings_type = FittedSettings
    settings: FittedSettings

    @cached_property
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""
        data, estimator = self.settings.data, self.settings.estimator
        observed = self.settings.observed
        return Seeds(*vars(data).values(), estimator, observed, self.replicate)

    @cached_property
    def table(self) -> Table:
        """All examples."""
        return load_table(self.settings.data)

    @cached_property
    def _places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Places of the examples of train and test, and of those to observe from."""
        table, count = self.table, len(self.table.targets)
        shared = make_generator("fitted test", table.digest, table.classes)
        rest, test = torch.randperm(count, generator=shared).tensor_split(2)
        own = make_generator("fitted split", table.digest, self.replicate)
        rest = rest[torch.randperm(len(rest), generator=own)]
        train, pool = rest.tensor_split([min(TRAINED, count // 3)])
        return train, pool, test

    @cached_property
    def _logits(self) -> Mapping[str, Tensor]:
        """Logits of all examples the classifier was not fitted to."""
        table, (train, pool, test) = self.table, self._places
        data, name = self.settings.data, self.settings.estimator

        def make() -> Artifact:
            given = table.inputs[train], table.targets[train]
            classifier = fitted(name, *given, seed=self.replicate)
            found = {
                part: logits(classifier, table.inputs[places], table.classes)
                for part, places in (("pool", pool), ("test", test))
            }
            return Artifact(found, {})

        key = {"data": encode(data), "digest": table.digest, "estimator": name}
        key |= {"replicate": self.replicate, "revision": self.settings.revision}
        return get_or_make("fitted", key, make).tensors

    @cached_property
    def splits(self) -> Splits:
        """The three splits, of outputs; gradients come from observe, as in `tune`."""
        table, (_, pool, test) = self.table, self._places
        count = min(self.settings.observed, len(table.targets) // 6)
        observe = self._split(self._logits["pool"][:count], pool[:count])
        judged = self._split(self._logits["test"], test)
        return Splits(
            observe, observe, judged, table.variant, table.digest, table.classes
        )

    def _split(self, outputs: Tensor, places: Tensor) -> Split:
        targets = self.table.targets[places]
        if self.table.groups is None:
            return Split(outputs, targets)
        groups = self.table.groups[places]
        return Split((outputs, groups), targets, {GROUP: groups})

    @cached_property
    def adapter(self) -> NetworkAdapter:
        """Offsets of the outputs, of every group its own where there are groups."""
        network, one = nn.Identity(), self.splits.observe.batch(slice(1))
        if self.table.groups is None:
            return OutputOffsets(Unmodulated(network, one), one)
        number = int(self.table.groups.max()) + 1
        count = self._logits["test"].shape[1]
        return GroupOffsets(ShiftedByGroup(network, groups=number, outputs=count))

    @property
    def loss(self) -> Loss:
        """The loss that logits are trained with."""
        if self.table.classes > 2:
            return nn.CrossEntropyLoss()
        return nn.BCEWithLogitsLoss()

    @property
    def sampler(self) -> Sampler:
        """What draws the mini-batches of fine-tuning."""
        return NaturalSampler(len(self.splits.train), BATCH_SIZE)

    @property
    def training_shares(self) -> Tensor:
        """Class shares of the examples the classifier was fitted to."""
        train, *_ = self._places
        return class_shares(self.table.targets[train], self.table.classes)

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the identity: there is no network behind known outputs."""
        return nn.Identity()

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Raise ConfigError: a fitted classifier is not trained further."""
        raise ConfigError("a fitted classifier has no mini-batches of training")

    def training(self, changes: Mapping[str, Any]) -> Training:
        """Raise ConfigError: a fitted classifier is not trained further."""
        raise ConfigError("a fitted classifier is not trained further")
