"""What looks wrong with train and observe, and in what they differ."""

from collections.abc import Sequence

import torch
from torch import Tensor

from metricopt.errors import DataError, described
from metricopt.reading.meaning import Meaning
from metricopt.reading.outputs import Targets, are_labels, range_of
from metricopt.tasks.examples import Examples

Confusion = tuple[Tensor, Tensor] | None
"""Examples by label and decision, [K, K], without phi and with it; None of no labels.
"""
LISTED = 10
"""Most absent classes that are named."""


def inward_train(train: Targets, observe: Targets, meaning: Meaning) -> Targets:
    """Return train targets in the form of methods; `observe` decided the meaning.

    Raises:
        DataError: if the loss would see other targets than those given.
    """
    if not isinstance(train, Tensor) or not isinstance(observe, Tensor):
        return train
    if not meaning.column or train.shape[1:2] == (1,):
        found = meaning.inward_targets(train)
        seen = meaning.outward_targets(found)
        if isinstance(seen, Tensor) and torch.equal(seen.to(train), train):
            return found
    raise DataError(
        f"the train targets must be whole labels in the form of the observe targets, "
        f"{described(observe)}, got {described(train)} from {range_of(train)}, which "
        "the loss would not see as they are"
    )


def doubts_of_splits(
    train: Examples, observe: Examples, meaning: Meaning, *, compares: bool
) -> list[str]:
    """Return what looks wrong with the targets of two splits, a sentence each.

    `compares` says whether the metric compares the examples with each other.
    """
    doubts = [meaning.doubt] if meaning.doubt else []
    if meaning.truth == "multi-label":
        doubts += doubts_of_label_sets(observe.targets)
    if compares and are_labels(train.targets) and are_labels(observe.targets):
        doubts += doubts_of_classes(observe.targets.cpu(), train.targets.cpu())
    return doubts


def doubts_of_classes(observed: Tensor, learned: Tensor) -> list[str]:
    """Return a sentence if classes of observe [N] are classes of train [M].

    For embeddings, which are to be good for classes that nobody has learned.
    """
    both = torch.isin(observed.unique(), learned.to(observed)).sum().item()
    if not both:
        return []
    return [
        f"{both} classes of observe are classes of train: a gain there says little of "
        "classes that are new."
    ]


def doubts_of_absence(confusion: Confusion) -> list[str]:
    """Return a sentence if there is a class without an example."""
    if confusion is None or not (absent := _listed(confusion[0].sum(1) == 0)):
        return []
    return [
        f"the observe split has no example of class {absent}: what becomes of such "
        "examples is not seen, and they may be predicted worse."
    ]


def doubts_of_decisions(
    confusion: Confusion, phi: Tensor, bounds: Sequence[object]
) -> list[str]:
    """Return a sentence if with phi, and only then, all decisions are alike.

    Where another metric is bounded, they are as its bound wants them.
    """
    if confusion is None or bounds or not phi.any():
        return []
    before, decided = confusion[0], confusion[1].sum(0) > 0
    varied = (before.sum(1) > 0).sum() > 1 and (before.sum(0) > 0).sum() > 1
    if not varied or decided.sum() > 1:
        return []
    return [
        f"with phi all examples of observe are decided as class {_listed(decided)}: "
        "where that is of no use, bound another metric by constraints=[...]."
    ]


def doubts_of_label_sets(targets: Targets) -> list[str]:
    """Return a sentence for labels that no example has, and for those that all have.

    Targets are zeros and ones, one for each of K labels, [N, K] or [N, K, ...].
    """
    assert isinstance(targets, Tensor)
    shares = targets.double().transpose(0, 1).flatten(1).mean(1)
    kinds = {"with": _listed(shares == 0), "without": _listed(shares == 1)}
    return [
        f"the observe split has no example {side} label {labels}: what becomes of such "
        "examples is not seen, and the metric may be undefined there."
        for side, labels in kinds.items()
        if labels
    ]


def _listed(chosen: Tensor) -> str:
    """Return the first places that are True, in words; empty if there are none."""
    places = chosen.nonzero().flatten().tolist()
    first = ", ".join(map(str, places[:LISTED]))
    return f"{first}, ..." if len(places) > LISTED else first


FACTOR, DEVIATIONS = 1.5, 4.0
"""How many times more frequent in one split a class has to be, and by how many
standard errors, to be named."""
NAMED = 3
"""Most such classes that are named."""


def differing_shares(train: Targets, observe: Targets) -> str:
    """Return which classes have clearly other shares in observe [N] than in train [M].

    The greatest differences come first; empty if there are none, or no labels.
    """
    if not are_labels(train) or not are_labels(observe):
        return ""
    kinds = torch.cat([train.cpu(), observe.cpu()]).unique()
    one, other = (
        (targets.cpu()[:, None] == kinds).double().mean(0)
        for targets in (train, observe)
    )
    pooled = (one * len(train) + other * len(observe)) / (len(train) + len(observe))
    error = (pooled * (1 - pooled) * (1 / len(train) + 1 / len(observe))).sqrt()
    apart = (one - other).abs()
    least, most = torch.minimum(one, other), torch.maximum(one, other)
    clear = (apart > DEVIATIONS * error) & (most >= FACTOR * least)
    order = apart.masked_fill(~clear, -1).argsort(descending=True, stable=True)
    places = [place for place in order.tolist() if clear[place]][:NAMED]
    return ", ".join(
        f"class {int(kinds[place])} with {other[place]:.1%} of the examples (train: "
        f"{one[place]:.1%})"
        for place in places
    )
