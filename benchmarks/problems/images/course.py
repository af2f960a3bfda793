"""Training of image networks by a network method, with its course."""

import math

from torch import Tensor, nn

from baselines.training.prediction import predict, predict_examples
from baselines.validation import labels
from benchmarks.problems.images.logit_metrics import metric_under
from benchmarks.problems.images.loss_surface import loss_surface
from benchmarks.problems.pretrained.method_training import (
    DIGITS,
    OBSERVE_LOSS,
    MethodTraining,
)
from benchmarks.runs.spec import Unit

WATCHED = (Unit("mcr"), Unit("aucpr"))
"""Metrics whose values on observe are noted after every epoch, for figures alone."""
LEARNED, WATCHED_EACH = 5_000, 2_000
"""Training images on which their error is noted at the end, and after every epoch."""
TRAIN_ERROR, TRAIN_LOSS, UNLIKELY = "train_error", "train_loss", "train_unlikely"
RARE = 0.1
"""Probability of the true class below which an image is unlikely to a network: there
the slope of ALA's printed loss is less than a third of cross-entropy's."""


SURFACED = ("ce", "ala-mcr", "ala-literal-mcr")
"""Labels of the trainings whose loss surfaces are noted."""
LOOKS = 6
"""Surfaces of a training, about: one every so many epochs."""
SHOWN = 500
"""Training images that a surface is of."""


class ImageMethodTraining(MethodTraining):
    """Trains a network that tells classes apart; see `MethodTraining`."""

    def watched(self, network: nn.Module) -> dict[str, float]:
        """Return metrics on observe, and cross-entropy and errors on both splits."""
        outputs, targets = predict_examples(network, self.observe), labels(self.observe)
        logits = outputs[:, : self.spec.classes]
        loss = float(nn.functional.cross_entropy(logits, targets))
        found = self._values(outputs, targets) | {OBSERVE_LOSS: loss}
        return found | self._fitted(network, WATCHED_EACH)

    def judged(self, network: nn.Module) -> dict[str, float]:
        """Return the error of classes on observe, and AUCPR."""
        outputs, targets = predict_examples(network, self.observe), labels(self.observe)
        values = self._values(outputs, targets)
        return {f"observe_{name}": value for name, value in values.items()}

    def surface(self, network: nn.Module, number: int) -> list[float]:
        """Return the loss surface after a few epochs; see `MethodTraining.surface`.

        Directions and images are the same for all methods and epochs.
        """
        epochs = self.spec.recipe.epochs
        is_shown = number == epochs or number % max(1, epochs // LOOKS) == 0
        if self.by.label not in SURFACED or not is_shown:
            return []
        inputs, targets = self.batches.plain(SHOWN), self.batches.targets[:SHOWN]
        generator = self.spec.seeds.generator("loss surface")
        surface = loss_surface(network, inputs, targets, generator)
        flat: list[float] = surface.flatten().tolist()
        return flat

    def noted(self, network: nn.Module) -> dict[str, float]:
        """Return the error rate on training images without augmentation."""
        error = self._fitted(network, LEARNED)[TRAIN_ERROR]
        return {TRAIN_ERROR: round(error, DIGITS)}

    def _values(self, outputs: Tensor, targets: Tensor) -> dict[str, float]:
        loss, classes = self.spec.loss(), self.spec.classes
        return {
            unit.label: metric_under(loss, unit, classes).value(outputs, targets)
            for unit in WATCHED
        }

    def _fitted(self, network: nn.Module, count: int) -> dict[str, float]:
        """Return what is noted of the first training images, without augmentation."""
        count = min(count, len(self.batches.targets))
        outputs = predict(network, self.batches.plain(count))[:, : self.spec.classes]
        targets = self.batches.targets[:count]
        wrong = outputs.argmax(1) != targets
        losses = nn.functional.cross_entropy(outputs, targets, reduction="none")
        unlikely = losses > -math.log(RARE)
        return {
            TRAIN_LOSS: float(losses.mean()),
            TRAIN_ERROR: float(wrong.double().mean()),
            UNLIKELY: float(unlikely.double().mean()),
        }
