"""Statistics of rankings: how scores of a class order its examples against the rest.

Every metric of a ranking is a function of its receiver operating characteristic: recall
at a share of false alarms, or precision at a recall. The area under the former (AUC)
and the latter (average precision) are linear in them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import STATISTICS, Groups, Statistics

FALSE_ALARMS = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7)
RECALLS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
SMOOTHNESS = 0.25
"""Width of the smooth step at a threshold, in deviations of the scores."""
MOST_CLASSES = 100
SMALL = 1e-12


@STATISTICS.register("rankings")
@dataclass(frozen=True)
class RankingStatistics(Statistics):
    """Recalls at shares of false alarms, and precisions at recalls, of every class.

    One output ranks class 1 against class 0. Several rank each class against the rest,
    once by its output and once by its share in the softmax.
    """

    name = "rankings"
    near = "areas"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether there are few enough classes to sort the scores of each."""
        return outputs.shape[-1] <= MOST_CLASSES

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the rankings, if wanted with smooth steps."""
        scores = _scores(outputs, smooth=smooth)
        return self._of_scores(scores, targets, weights, smooth=smooth)

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the groups of the rankings within folds, laid upon each other.

        Source: Forman and Scholz, SIGKDD Explorations 2010: one ranking of all examples
        by networks that differ is worse than the rankings of the folds are.
        """
        levels = {
            name: _levels(scores, folds)
            for name, scores in _scores(views, smooth=False).items()
        }
        return self._of_scores(levels, targets, weights, smooth=False)

    def _of_scores(
        self,
        views: dict[str, Tensor],
        targets: Tensor,
        weights: Tensor | None,
        *,
        smooth: bool,
    ) -> Groups:
        """Return the groups of scores [B, N, C], by the name of the scores."""
        outputs = views["output"]
        classes = outputs.shape[-1]
        first = 1 if classes == 1 else 0
        labels = torch.arange(first, first + classes, device=targets.device)
        positive = (targets[:, None] == labels).T.to(outputs)  # [C, N]
        return _ranked_groups(views, positive, weights, smooth)


@STATISTICS.register("label-rankings")
@dataclass(frozen=True)
class LabelRankingStatistics(Statistics):
    """Rankings of the examples by every label, and of all pairs of both at once.

    Outputs are logits [B, N, K] of K labels, targets zeros and ones [N, K].
    """

    name = "label rankings"
    near = "areas"

    @property
    def reads(self) -> Reads:
        """Logits of labels."""
        return "labels"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether there are few enough labels to sort the scores of each."""
        return outputs.shape[-1] <= MOST_CLASSES

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the rankings, if wanted with smooth steps."""
        pairs = outputs.flatten(1)[..., None]
        return self._of_scores(outputs, pairs, targets, weights, smooth=smooth)

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the groups of the rankings within folds, laid upon each other."""
        levels = _levels(views, folds)
        # Pairs are ranked across labels, whose own levels do not say which is higher.
        own = folds.repeat_interleave(views.shape[-1])
        pairs = _levels(views.flatten(1)[..., None], own)
        return self._of_scores(levels, pairs, targets, weights, smooth=False)

    def _of_scores(
        self,
        scores: Tensor,
        pairs: Tensor,
        targets: Tensor,
        weights: Tensor | None,
        *,
        smooth: bool,
    ) -> Groups:
        """Return the groups of scores [B, N, K], and of all pairs, [B, N K, 1]."""
        positive = targets.to(scores)
        found = _ranked_groups({"output": scores}, positive.T, weights, smooth)
        spread = (
            None if weights is None else weights.repeat_interleave(scores.shape[-1], 1)
        )
        views, of_all = {"pair": pairs}, positive.flatten()[None]
        whole = _ranked_groups(views, of_all, spread, smooth)
        return found | {name: each for name, each in whole.items() if "pair" in name}


def _ranked_groups(
    views: dict[str, Tensor], positive: Tensor, weights: Tensor | None, smooth: bool
) -> Groups:
    """Return the groups of scores [B, N, C] by name, for positives [C, N] of each.

    Weights of the examples are [B, N].
    """
    outputs = next(iter(views.values()))
    if weights is None:
        weights = outputs.new_ones(1, outputs.shape[1])
    weights = weights.to(outputs)[:, None]
    groups, areas = {}, []
    for name, scores in views.items():
        ranked = _Ranked.of(scores.transpose(1, 2), positive, weights)
        recalls, precisions = ranked.recalls(smooth), ranked.precisions(smooth)
        groups[f"recalls by {name}"] = recalls.flatten(1)
        groups[f"precisions by {name}"] = precisions.flatten(1)
        if outputs.shape[-1] > 1:
            groups[f"mean recalls by {name}"] = recalls.mean(1)
            groups[f"mean precisions by {name}"] = precisions.mean(1)
        areas.append(recalls.mean(2))
    groups["areas"] = torch.cat(areas, 1)
    return {name: values.double() for name, values in groups.items()}


def _scores(outputs: Tensor, *, smooth: bool) -> dict[str, Tensor]:
    """Return the scores [B, N, C] that examples are ranked by, by name."""
    if outputs.shape[-1] == 1:
        return {"output": outputs}
    shares = _log_odds(outputs) if smooth else outputs.log_softmax(-1)
    return {"output": outputs, "softmax": shares}


def _levels(scores: Tensor, folds: Tensor) -> Tensor:
    """Return the share of its fold below each score, ties counted half: [B, N, C].

    Levels of different folds differ by a fraction of a rank. Otherwise the order of
    the examples, which may be by class, would decide.
    """
    levels = torch.empty_like(scores, dtype=torch.float64)
    kinds = folds.unique()
    for number, fold in enumerate(kinds):
        places = (folds == fold).nonzero().flatten().to(scores.device)
        own = scores[:, places].transpose(1, 2).contiguous()
        ordered = own.sort(-1).values
        below = torch.searchsorted(ordered, own)
        not_above = torch.searchsorted(ordered, own, right=True)
        level = (below + not_above) / 2 + number / len(kinds)
        levels[:, places] = (level.double() / len(places)).transpose(1, 2)
    return levels


def _log_odds(outputs: Tensor) -> Tensor:
    """Return the log odds of every class, whose spread is that of the outputs.

    Log probabilities rank alike, but those of sure predictions lie all near 0.
    """
    logs = outputs.log_softmax(-1)
    return logs - torch.log1p(-logs.exp().clamp(max=1 - 1e-6))


@dataclass(frozen=True)
class _Ranked:
    """Examples in the order of their scores, greatest first.

    Attributes:
        scores: shape [B, C, N].
        positive: weights of the examples of the class, shape [B, C, N].
        negative: weights of the others, shape [B, C, N].
    """

    scores: Tensor
    positive: Tensor
    negative: Tensor

    @classmethod
    def of(cls, scores: Tensor, positive: Tensor, weights: Tensor) -> "_Ranked":
        """Return scores [B, C, N] in order, with labels [C, N], weights [B, 1, N]."""
        ordered, order = scores.sort(-1, descending=True)
        chosen = (weights * positive).expand_as(scores)
        others = (weights * (1 - positive)).expand_as(scores)
        return cls(ordered, chosen.gather(-1, order), others.gather(-1, order))

    def recalls(self, smooth: bool) -> Tensor:
        """Return the recall at every share of false alarms, [B, C, J]."""
        return self._share(self.positive, self.negative, FALSE_ALARMS, smooth)

    def precisions(self, smooth: bool) -> Tensor:
        """Return the precision at every recall, [B, C, J]."""
        alarms = self._share(self.negative, self.positive, RECALLS, smooth)
        hits = alarms.new_tensor(RECALLS) * self.positive.sum(-1, keepdim=True)
        return hits / (hits + alarms * self.negative.sum(-1, keepdim=True) + SMALL)

    def _spread(self) -> Tensor:
        """Return the standard deviation of the scores, [B, C, 1], as a constant."""
        weights, scores = self.positive + self.negative, self.scores.detach()
        total = weights.sum(-1, keepdim=True) + SMALL
        mean = (weights * scores).sum(-1, keepdim=True) / total
        squares = (weights * (scores - mean).square()).sum(-1, keepdim=True)
        return (squares / total).sqrt()

    def _share(
        self, counted: Tensor, given: Tensor, levels: tuple[float, ...], smooth: bool
    ) -> Tensor:
        """Return the share of one kind above thresholds, [B, C, J].

        The threshold of a level is the score at which that share of the other kind is
        reached.
        """
        reached = given.cumsum(-1)
        wanted = reached[..., -1:] * reached.new_tensor(levels)
        place = torch.searchsorted(reached, wanted - 1e-4).clamp(
            max=given.shape[-1] - 1
        )
        total = counted.sum(-1, keepdim=True) + SMALL
        if not smooth:
            return counted.cumsum(-1).gather(-1, place) / total
        thresholds = self.scores.gather(-1, place)
        width = SMOOTHNESS * self._spread()[..., None] + SMALL
        above = (self.scores[:, :, None] - thresholds[..., None]) / width
        return torch.einsum("bcjn,bcn->bcj", above.sigmoid(), counted) / total
