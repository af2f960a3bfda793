"""What determines theta of a structured problem, and how it is trained."""

from typing import Any

from torch import Tensor, nn

from baselines.training.batches import Batches
from baselines.training.loop import OnEpoch
from baselines.training.prediction import predict_examples
from baselines.validation import labels
from benchmarks.problems.pretrained.method_training import (
    OBSERVE_LOSS,
    MethodTraining,
)
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.pretrained.weights import device, predicted
from benchmarks.problems.splits import Splits
from benchmarks.problems.structured.contract import (
    Modality,
    StructuredBackbone,
    StructuredProblem,
    modality_of,
)
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.spec import metric_of
from metricopt.losses.contract import Loss
from metricopt.process.seeding import Seeds


class _Course(MethodTraining):
    """Notes the metrics and the usual loss of every epoch on observe."""

    def watched(self, network: nn.Module) -> dict[str, float]:
        """Return all metrics of the modality, and the usual loss, on observe."""
        modality: Modality = self.spec.modality
        outputs, targets = predict_examples(network, self.observe), labels(self.observe)
        found = {
            unit.label: metric_of(unit).value(outputs, targets)
            for unit in modality.metrics
        }
        return found | {OBSERVE_LOSS: float(modality.loss(outputs, targets))}


class StructuredThetaSpec(ThetaSpec):
    """Examples, the network with the method that trains it, and the replicate."""

    kind = "structured-theta"
    course = _Course
    problem: StructuredProblem
    backbone: StructuredBackbone

    @property
    def modality(self) -> Modality:
        """What the answers are."""
        return modality_of(self.problem)

    @property
    def told(self) -> dict[str, str]:  # type: ignore[override]
        """Facts that a table of released networks shows, by heading."""
        modality = self.modality
        pairs = zip(modality.labels, modality.metrics, strict=True)
        return {f"{label} on observe": _fact(unit.name) for label, unit in pairs}

    @property
    def at_once(self) -> int:  # type: ignore[override]
        """Examples that the network sees at a time when it is judged."""
        return self.modality.at_once

    @property
    def seeds(self) -> Seeds:
        """Seeds of its training: every method begins with the same weights."""
        parts = (self.problem.dataset, self.backbone.network, f"r{self.replicate}")
        return Seeds("-".join(parts))

    def fetch_base(self) -> None:
        """Download base weights and vocabulary where they are published."""
        super().fetch_base()
        self.modality.fetch(self.problem)

    def splits(self) -> Splits:
        """Return all examples of the problem."""
        return self.modality.splits(self.problem, self.replicate)

    def fresh(self) -> Any:
        """Return the network with random weights."""
        return self.modality.fresh(self.problem, self.backbone.network, self.seed)

    def start(self, splits: Splits) -> Any:
        """Return the network as its training starts."""
        network = super().start(splits)
        self.modality.prepared(network, splits.train)
        return network

    def loss(self) -> Loss:
        """Return the usual loss."""
        return self.modality.loss

    def batches(self, splits: Splits, recipe: Any) -> Batches:
        """Return the mini-batches of a training."""
        return self.modality.batches(splits.train.to(device()), recipe)

    def image(self) -> Tensor:
        """Return an input of the network, to measure its cost."""
        return self.modality.example(self.problem)

    def judge(self, network: nn.Module, observe: Any) -> dict[str, float]:
        """Return all metrics of the modality on observe."""
        outputs = predicted(network, observe, self.at_once)
        return {
            _fact(unit.name): metric_of(unit).value(outputs, observe.targets)
            for unit in self.modality.metrics
        }

    def train(self, on_epoch: OnEpoch | None = None) -> Artifact:
        """Train the network, continuing from its checkpoint; see `ThetaSpec.train`."""
        splits = self.splits()
        network, batches = self.start(splits), self.batches(splits, self.recipe)
        return self._train(network, batches, splits.observe.to(device()), on_epoch)


def _fact(metric: str) -> str:
    return f"observe_{metric.replace('-', '_')}"
