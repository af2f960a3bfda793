"""Maps of classes, which metrics of segmentation compare image by image."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.nn.functional import one_hot

from metricopt.errors import DataError
from metricopt.metrics.base import check_outputs
from metricopt.reading.expected import WRAP, implied_meaning
from metricopt.reading.meaning import Meaning

Format = Literal["one-hot", "index", "mixed"]
"""Maps as torchmetrics takes them: a channel for each class, or labels; mixed are
predictions with a channel each and targets that are labels."""


@dataclass(frozen=True)
class Maps:
    """What a metric of segmentation expects: maps of decided and of true labels.

    Attributes:
        name: name of the metric, for messages.
        classes: number of classes; None for any.
        form: form of the maps.
    """

    name: str
    classes: int | None
    form: Format

    def of(
        self, meaning: Meaning | None, outputs: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return maps, [N, ...] of labels or [N, K, ...] one-hot, int64.

        Args:
            meaning: what outputs are; None if targets say so.
            outputs: in the form of methods, [N, C, ...].
            targets: labels, [N, ...].

        Raises:
            DataError: if there are no maps, the metric is for another number of
                classes, or some labels are ignored, which it cannot leave out.
            MetricError: if outputs have NaN.
        """
        meaning = meaning or implied_meaning(outputs, targets)
        count = max(outputs.shape[1], 2)
        self._check(meaning, outputs, targets, count)
        check_outputs(self.name, outputs)
        one = outputs.shape[1] == 1
        decided = (outputs[:, 0] > 0).long() if one else outputs.argmax(1)
        truth = targets[:, 0] if targets.ndim == outputs.ndim else targets
        truth = truth.long().to(decided.device)
        if self.form == "index":
            return decided, truth
        channels = one_hot(decided, count).movedim(-1, 1)
        if self.form == "mixed":
            return channels, truth
        return channels, one_hot(truth, count).movedim(-1, 1)

    def _check(
        self, meaning: Meaning, outputs: Tensor, targets: Tensor, count: int
    ) -> None:
        if outputs.ndim < 3 or meaning.truth != "labels":
            raise DataError(
                f"{self.name} compares maps of classes, outputs [N, C, ...] with "
                f"labels [N, ...], but here: {meaning.describe()}"
            )
        if self.classes not in (None, count):
            raise DataError(
                f"{self.name} is for {self.classes} classes, but the outputs have "
                f"{count}"
            )
        if meaning.ignored is not None and bool((targets == meaning.ignored).any()):
            raise DataError(
                f"{self.name} cannot leave out the label {meaning.ignored}, which "
                f"targets have: use torchmetrics.classification with ignore_index, or "
                f"{WRAP}"
            )
