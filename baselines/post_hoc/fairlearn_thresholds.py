"""Thresholds by group from Fairlearn: equal error rates, by decisions partly at random.

No metric is queried: the thresholds are the most accurate ones at which all groups have
the same true and the same false positive rates on the observe split.

Source: Hardt et al., NeurIPS 2016; Fairlearn, `ThresholdOptimizer` with
`constraints="equalized_odds"` and `prefit=True`, which is called here. Differs:
nothing; the scores are those of a network that is trained already.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from baselines.validation import check_binary
from metricopt.errors import DataError, ShapeError
from metricopt.methods.evolution import draw_seeds

if TYPE_CHECKING:
    from fairlearn.postprocessing import ThresholdOptimizer

USER = "Fairlearn's optimizer"


@dataclass(frozen=True, eq=False)
class GroupThresholds:
    """Two thresholds for every group, between which chance decides.

    Attributes:
        optimizer: Fairlearn's, fitted.
        groups: numbers of the groups that it knows, ascending.
        seed: what decides the chance, in the same way at every call.
    """

    optimizer: "ThresholdOptimizer"
    groups: tuple[int, ...]
    seed: int

    def decide(self, outputs: Tensor, groups: Tensor) -> Tensor:
        """Return decisions, 1 for the positive class and -1 for the other, [N, 1].

        Args:
            outputs: logits of the positive class, shape [N, 1].
            groups: number of the group of every example, shape [N].

        Raises:
            DataError: if there is a group that no observed example belongs to.
        """
        _check_groups(outputs, groups)
        new = sorted({*groups.tolist()} - {*self.groups})
        if new:
            raise DataError(
                f"{USER} knows the groups of observe, {list(self.groups)}, got also "
                f"{new}"
            )
        decided = self.optimizer.predict(
            _scores(outputs),
            sensitive_features=groups.cpu().numpy(),
            random_state=self.seed,
        )
        return 2 * torch.from_numpy(decided).to(outputs)[:, None] - 1


def equalize_odds(
    outputs: Tensor, groups: Tensor, targets: Tensor, *, generator: torch.Generator
) -> GroupThresholds:
    """Return the thresholds that Fairlearn chooses for equal error rates.

    Args:
        outputs: logits of the positive class on the observe split, shape [N, 1].
        groups: number of the group of every example, shape [N].
        targets: labels in {0, 1}, shape [N]; every group has both.
        generator: source of the seed of random decisions.

    Raises:
        ShapeError: if outputs are not [N, 1], or groups not N whole numbers.
        DataError: if one of the classes is missing from a group.
    """
    check_binary(outputs, targets, user=USER)
    _check_groups(outputs, groups)
    known = groups.unique().tolist()
    for group in known:
        found = targets[groups == group].unique().tolist()
        if len(found) < 2:
            raise DataError(
                f"{USER} needs examples of both classes in every group, got only class "
                f"{found[0]} in group {group}"
            )
    # Not above: every worker imports this file, and Fairlearn takes seconds.
    from fairlearn.postprocessing import ThresholdOptimizer

    from baselines.post_hoc.fixed_scores import FixedScores

    optimizer = ThresholdOptimizer(
        estimator=FixedScores(),
        constraints="equalized_odds",
        objective="accuracy_score",
        prefit=True,
        predict_method="predict_proba",
    )
    column = groups.cpu().numpy()
    optimizer.fit(_scores(outputs), targets.cpu().numpy(), sensitive_features=column)
    (seed,) = draw_seeds(1, generator)
    return GroupThresholds(optimizer, tuple(known), seed)


def _check_groups(outputs: Tensor, groups: Tensor) -> None:
    if groups.shape != outputs.shape[:1] or groups.is_floating_point():
        raise ShapeError(
            f"{USER} needs the number of a group for each of the {len(outputs)} "
            f"examples, got {groups.dtype} of shape {list(groups.shape)}"
        )


def _scores(outputs: Tensor) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = outputs.detach().cpu().double().numpy()
    return scores
