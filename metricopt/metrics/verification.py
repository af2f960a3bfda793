"""Verification accuracy: whether two embeddings are of one class, by a threshold.

Source: G. B. Huang et al., "Labeled Faces in the Wild", UMass 07-49, 2007: pairs in ten
folds that share no person; the threshold for one is the best on the other nine.
"""

import torch
from torch import Tensor

from metricopt.errors import DataError
from metricopt.metrics.base import METRICS, Metric, check_integers
from metricopt.metrics.neighbours import check_classes, of_length_one

FOLDS = 10
FEWEST = 4
"""Classes that two folds need."""


@METRICS.register("verification")
class Verification(Metric):
    """Accuracy of telling whether two embeddings [N, E] are of one class, in [0, 1].

    Classes are dealt out to ten folds in the order of their labels, or to fewer folds
    of two classes each. Pairs are all those within a fold, compared by cosine. Pairs of
    one class and pairs of two weigh the same, as if there were as many of either kind:
    chance is 0.5. See `fold_accuracy` for the threshold.

    Raises:
        DataError: by `value` and `values`, if there are fewer than four classes, a
            class has one example only, or labels are not integers.
        MetricError: by these, if an embedding is zero or not finite.

    Source: the protocol of LFW. Differs: all pairs within folds instead of listed ones.
    """

    name = "verification"
    higher_is_better = True
    needs_two_classes = True
    reads = "embeddings"

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        labels = check_integers(self.name, targets)
        check_classes(self.name, labels)
        classes, ranks = labels.to(outputs.device).unique(return_inverse=True)
        if len(classes) < FEWEST:
            raise DataError(
                f"metric {self.name!r} needs {FEWEST} classes or more, two for every "
                f"fold, got {len(classes)}"
            )
        # In double precision, so that the type of the outputs decides no pair.
        unit = of_length_one(outputs.detach().double(), self.name)
        count = min(FOLDS, len(classes) // 2)
        similarities, same, folds = [], [], []
        for fold in range(count):
            members = (ranks % count == fold).nonzero()[:, 0]
            first, second = members[torch.combinations(torch.arange(len(members)))].T
            similarities.append((unit[first] * unit[second]).sum(1))
            same.append(ranks[first] == ranks[second])
            folds.append(torch.full_like(first, fold))
        return fold_accuracy(torch.cat(similarities), torch.cat(same), torch.cat(folds))


def fold_accuracy(similarities: Tensor, same: Tensor, folds: Tensor) -> float:
    """Return the mean accuracy over folds, each by the best threshold on all others.

    In every accuracy both kinds of pairs weigh the same, as in the ten folds of LFW,
    which have 300 pairs of either.

    Args:
        similarities: of P pairs, greater where they are more alike, shape [P].
        same: whether they are of one class, bool, shape [P].
        folds: number of the fold of each, shape [P].

    Raises:
        DataError: if there is one fold only, or one lacks either kind of pair.
    """
    numbers = folds.unique().tolist()
    if len(numbers) < 2:
        raise DataError(f"verification needs two folds or more, got {len(numbers)}")
    found = []
    for number in numbers:
        own = folds == number
        kinds = same[own].unique()
        if len(kinds) < 2:
            raise DataError(
                "verification needs pairs of one class and of two in every fold, got "
                f"one kind in fold {number}"
            )
        threshold = best_threshold(similarities[~own], same[~own])
        called = similarities[own] > threshold
        right = [called[same[own]].double(), (~called[~same[own]]).double()]
        found.append(torch.stack([each.mean() for each in right]).mean())
    return float(torch.stack(found).mean())


def best_threshold(similarities: Tensor, same: Tensor) -> float:
    """Return the similarity above which pairs are best called the same.

    It lies in the middle between two neighbours, the highest of equally good ones;
    infinite where no pair, or every pair, is best called the same.

    Args:
        similarities: of P pairs, shape [P].
        same: whether they are of one class, bool, both kinds, shape [P].
    """
    ordered, order = similarities.double().sort(descending=True)
    alike = same[order].double()
    gain = alike / alike.sum() - (1 - alike) / (1 - alike).sum()
    gains = torch.cat([gain.new_zeros(1), gain.cumsum(0)])
    # No threshold lies between two equal similarities.
    between = (ordered[:-1] == ordered[1:]).nonzero()[:, 0] + 1
    gains[between] = -torch.inf
    best = int(gains.argmax())
    ends = torch.cat(
        [ordered.new_tensor([torch.inf]), ordered, ordered.new_tensor([-torch.inf])]
    )
    return float((ends[best] + ends[best + 1]) / 2)
