"""Clusters: observed examples that belong together, and inputs that come repeatedly.

The images of a patient, or copies of an example, say less than as many others would. A
gain on them is estimated as one on new clusters.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from metricopt.errors import DataError
from metricopt.reading.columns import (
    MOST_GROUPS,
    Columns,
    columns_of,
    groups_of,
    levels,
)
from metricopt.reading.inputs import tensors_of
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import Split

FEWEST = 10
"""Fewest clusters on which a gain is estimated."""
FEWEST_SEEN = max(FEWEST, MOST_GROUPS + 1)
"""Fewest if the metric sees them, too: it may look at `MOST_GROUPS` one by one."""
FEWEST_OF_GROUP = 5
"""Fewest in a group that the metric looks at: one sample in 150 then leaves it out."""
MISSING = {"nan", "None", "<NA>", "NaT"}
"""What values that are missing are called."""
LOOKED_AT = 256
"""Numbers of an example by which others that may be the same are found."""
REPEATED = 0.01
"""Share of the observed examples that may be in train without a word."""
COPIED = 0.1
"""Share that may be copies of others: fewer change the error of a gain by little."""


@dataclass(frozen=True)
class Clusters:
    """Which examples of observe belong together.

    Attributes:
        of: the cluster of every example, [N]; None if each stands for itself.
        new: what later data have, in words, if a column names clusters.
        doubts: what is to be said of inputs that come repeatedly, a sentence each.
    """

    of: Tensor | None = None
    new: str = ""
    doubts: tuple[str, ...] = ()


NO_CLUSTERS = Clusters()


def clusters_of(
    observe: Examples, train: Examples | None, name: str | None
) -> Clusters:
    """Return the clusters that a column of observe names, or else those of copies.

    Copies are inputs that are the same, if they are many, and many more than among as
    many examples of train: in tables of few values, examples repeat by themselves. Only
    inputs in memory are looked at, and none without train.

    Raises:
        DataError: if there is no such column, or it is not a name for each example.
    """
    found = NO_CLUSTERS
    if isinstance(train, Split) and isinstance(observe, Split):
        found = _repeats(train, observe, look=name is None)
    if name is None:
        return found
    of = named_clusters(columns_of(observe), name)
    return replace(found, of=of, new=f"new values of {name!r}")


def named_clusters(columns: Columns, name: str) -> Tensor:
    """Return the cluster of every example, [N], that a column names.

    Raises:
        DataError: if there is no such column, or it is not a name for each example.
    """
    if name not in columns:
        raise DataError(
            f"clusters={name!r} must name a column of observe, got the columns "
            f"{', '.join(map(repr, columns)) or '(none)'}"
        )
    places, names = levels(columns[name])
    if columns[name].ndim != 1:
        raise DataError(
            f"clusters={name!r} needs one value for each example, got a column of "
            f"shape {list(columns[name].shape)}"
        )
    if missing := [each for each in names if each in MISSING]:
        raise DataError(
            f"clusters={name!r} needs the cluster of every example, got {missing[0]}: "
            "leave such examples out, or give each a name of its own"
        )
    # By what comes first, so that folds do not depend on how clusters are called.
    numbers: dict[int, int] = {}
    of = [numbers.setdefault(place, len(numbers)) for place in places.tolist()]
    return torch.tensor(of)


def require_clusters(columns: Columns, name: str, taken: Collection[str]) -> None:
    """Refuse clusters on which no gain on new ones can be estimated.

    Args:
        columns: columns of all examples of observe.
        name: the column of clusters.
        taken: columns that the metric takes. Where one names a few groups, each has to
            be in several clusters, or samples of clusters would leave it out.

    Raises:
        DataError: if they are too few, or those of a group.
    """
    of = named_clusters(columns, name)
    if (count := len(of.unique())) < FEWEST:
        raise DataError(
            f"clusters={name!r} must name at least {FEWEST} clusters, as the gain on "
            f"new ones is estimated from them, got {count}"
        )
    used = {each: columns[each] for each in taken if each in columns}
    for column, (places, groups) in groups_of(used, amounts=False).items():
        for place, group in enumerate(groups):
            if (own := len(of[places == place].unique())) < FEWEST_OF_GROUP:
                raise DataError(
                    f"clusters={name!r} needs at least {FEWEST_OF_GROUP} clusters in "
                    f"every group of {column!r}, as samples of them would leave it "
                    f"out, got {own} in {group}; amounts need a point, such as 1.0"
                )


def _repeats(train: Split, observe: Split, *, look: bool) -> Clusters:
    """Return which observed inputs are copies, if asked, or inputs of train, too."""
    learned, seen = (tensors_of(split.inputs) for split in (train, observe))
    if [part.shape[1:] for part in learned] != [part.shape[1:] for part in seen]:
        return NO_CLUSTERS
    known, kinds = _numbered(learned, seen)
    of, doubts, size = None, [], len(kinds)
    copied = _share_copied(kinds)
    if look and copied > COPIED and copied > 2 * _usual(known, size):
        of = kinds
        doubts.append(
            f"{round(copied * size)} of {size} observed examples are copies of others: "
            "the metric counts each of them, but none is evidence of its own, so "
            "copies stay together where the gain is estimated."
        )
    again = torch.isin(kinds, known).double().mean().item()
    chance = 0.0 if doubts else _usual(kinds, len(known))
    if again > REPEATED and (train is observe or again > 2 * chance):
        doubts.append(
            f"{round(again * size)} of {size} observed examples are in train, too: the "
            "network may know them by heart, and a gain there says little of others."
        )
    return Clusters(of, doubts=tuple(doubts))


def _usual(known: Tensor, size: int) -> float:
    """Return the share of copies among so many examples that are like others, [M].

    If the others are fewer, what is repeated among them comes as much more often.
    """
    order = torch.randperm(len(known), generator=torch.Generator().manual_seed(0))
    return _share_copied(known[order[:size]]) * max(1.0, size / len(known))


def _share_copied(kinds: Tensor) -> float:
    """Return the share of examples whose kind [N] is that of others, too."""
    return (kinds.bincount()[kinds] > 1).double().mean().item()


def _numbered(*splits: tuple[Tensor, ...]) -> list[Tensor]:
    """Return a number for every example of each split, equal where inputs are."""
    looks = [list(_looks(inputs)) for inputs in splits]
    often = Counter(key for own in looks for key in own)
    numbers: dict[tuple[int, bytes], int] = {}
    found = []
    for inputs, own in zip(splits, looks, strict=True):
        whole = [
            (key, _digest(inputs, at) if often[key] > 1 else b"")
            for at, key in enumerate(own)
        ]
        found.append(
            torch.tensor([numbers.setdefault(key, len(numbers)) for key in whole])
        )
    return found


def _looks(inputs: tuple[Tensor, ...]) -> Iterator[int]:
    """Return a number of every example, made of some of its numbers."""
    found = []
    for part in inputs:
        flat = part.reshape(len(part), -1)
        some = flat[:, :: max(1, flat.shape[1] // LOOKED_AT)]
        found.append(some.detach().double().cpu().numpy())
    rows = zip(*found, strict=True)
    return (hash(tuple(part.tobytes() for part in row)) for row in rows)


def _digest(inputs: tuple[Tensor, ...], at: int) -> bytes:
    """Return a digest of all numbers of an example."""
    found = hashlib.blake2b(digest_size=16)
    for part in inputs:
        row = part[at].detach().reshape(-1).contiguous()
        found.update(row.view(torch.uint8).cpu().numpy().tobytes())
    return found.digest()
