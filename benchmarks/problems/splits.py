"""The splits of a problem, of whatever kind."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.data.files.readers import MORE, named
from metricopt.errors import DataError


@dataclass(frozen=True, eq=False)
class Splits:
    """The splits of a problem, with inputs as the network takes them.

    Attributes:
        train, observe, test: examples in the sense of
            `metricopt.tasks.examples.Examples`; `train` gives gradients.
        variant: label of the data set they come from.
        digest: identity of the data set.
        classes: number of classes C of `train`; None where nobody asks.
        groups: super-category of every training image, shape [N]; None without any.
    """

    train: Any
    observe: Any
    test: Any
    variant: str
    digest: str
    classes: int | None = None
    groups: Tensor | None = None

    @property
    def parts(self) -> dict[str, Any]:
        """The splits by name: `train`, `observe` and `test`."""
        return {"train": self.train, "observe": self.observe, "test": self.test}

    def on(
        self, device: torch.device, train: int | None = None, observe: int | None = None
    ) -> "Splits":
        """Return the splits on a device.

        Args:
            device: where batches and targets are put.
            train: examples of `train` that are used, the first ones; None for all.
            observe: the same for `observe`.
        """
        return replace(
            self,
            train=self.train.first(train).to(device),
            observe=self.observe.first(observe).to(device),
            test=self.test.to(device),
        )


def require_classes(where: str, found: Tensor, wanted: Mapping[int, object]) -> None:
    """Check that a split holds every class.

    Args:
        where: what the message calls the split.
        found: labels of the split.
        wanted: names of all classes, by label.

    Raises:
        DataError: if it lacks one.
    """
    present = set(found.tolist())
    missing = [name for label, name in wanted.items() if label not in present]
    if missing:
        first = named(missing, MORE)
        raise DataError(f"{where} must hold every class, got none of {first}")
