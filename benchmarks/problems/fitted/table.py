"""Tables: what is predicted of a data set, from which features, and by which groups."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.data.a9a import ATTRIBUTES
from benchmarks.data.registry import load_dataset

GROUP = "group"
"""Column of the splits that holds the group of every example."""
FREQUENT = 100
"""Fewest examples of a value that is predicted; those of others are left out."""


@dataclass(frozen=True)
class TableData:
    """What is predicted of a data set.

    Attributes:
        dataset: name of the data set.
        variant: variant of the data set.
        predicted: the attribute of A9A that is predicted, which is then no feature;
            empty for the classes of the data set.
        positive: classes against the rest; empty for all classes apart.
        group: the attribute of A9A by which examples have offsets of their own and
            metrics a column `group`; empty for none.
    """

    dataset: str
    variant: str
    predicted: str = ""
    positive: tuple[int, ...] = ()
    group: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """Examples of a table.

    Attributes:
        inputs: features, shape [N, F].
        targets: labels, shape [N].
        groups: group of every example, shape [N]; None without any.
        variant: label of the data set.
        digest: identity of the data set.
    """

    inputs: Tensor
    targets: Tensor
    groups: Tensor | None
    variant: str
    digest: str

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return int(self.targets.max()) + 1


def load_table(data: TableData) -> Table:
    """Return the examples of a table, in the order of the data set."""
    found = load_dataset(data.dataset, data.variant, offline=True)
    inputs, targets = found.inputs.flatten(1), found.targets
    features, kept = inputs, torch.ones(len(targets), dtype=torch.bool)
    if data.predicted:
        place = ATTRIBUTES[data.predicted]
        targets, kept = _attribute(inputs[:, place])
        features = torch.cat([inputs[:, : place.start], inputs[:, place.stop :]], 1)
    if data.positive:
        targets = torch.isin(targets, torch.tensor(data.positive)).long()
    groups = inputs[kept][:, ATTRIBUTES[data.group]].argmax(1) if data.group else None
    return Table(features[kept], targets[kept], groups, found.label, found.digest)


def _attribute(one_hot: Tensor) -> tuple[Tensor, Tensor]:
    """Return labels [N] of values [N, C], and which examples have a frequent one.

    Frequent values are numbered from 0; other labels mean nothing.
    """
    frequent = one_hot[:, one_hot.sum(0) >= FREQUENT]
    return frequent.argmax(1), frequent.sum(1) > 0
