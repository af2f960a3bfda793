"""Training of image networks by a network method, with its course."""

from torch import nn

from baselines.training.prediction import predict, predict_examples
from baselines.validation import labels
from benchmarks.problems.pretrained.method_training import (
    DIGITS,
    OBSERVE_LOSS,
    MethodTraining,
)
from benchmarks.runs.spec import Unit, metric_of
from metricopt.losses.contract import Loss

WATCHED = (Unit("mcr"), Unit("aucpr"))
"""Metrics whose values on observe are noted after every epoch, for figures alone."""
LEARNED = 5_000
"""Training images on which the error on the training split is noted."""
TRAIN_ERROR = "train_error"


class ImageMethodTraining(MethodTraining):
    """Trains a network that tells classes apart; see `MethodTraining`."""

    @property
    def loss(self) -> Loss:
        """Cross-entropy."""
        return nn.CrossEntropyLoss()

    def watched(self, network: nn.Module) -> dict[str, float]:
        """Return metrics and cross-entropy on observe."""
        outputs, targets = predict_examples(network, self.observe), labels(self.observe)
        found = {
            unit.label: metric_of(unit).value(outputs, targets) for unit in WATCHED
        }
        loss = nn.functional.cross_entropy(outputs, targets)
        return found | {OBSERVE_LOSS: float(loss)}

    def noted(self, network: nn.Module) -> dict[str, float]:
        """Return the error rate on training images without augmentation."""
        count = min(LEARNED, len(self.batches.targets))
        called = predict(network, self.batches.plain(count)).argmax(1)
        wrong = called != self.batches.targets[:count]
        return {TRAIN_ERROR: round(float(wrong.double().mean()), DIGITS)}
