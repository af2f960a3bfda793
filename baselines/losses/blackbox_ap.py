"""Black-box AP loss: one minus average precision, ranked over the mini-batch."""

from torch import Tensor

from baselines.losses.blackbox_ranking import ap_loss, standardise
from baselines.losses.contract import LOSSES
from metricopt.losses.contract import LossProperties, RowLoss, one_versus_rest


@LOSSES.register("blackbox-ap")
class BlackboxAP(RowLoss):
    """Mean of 1 - AP over the classes, each ranked against the rest by its logit.

    Logits are standardised over the mini-batch first; margin and lam apply after that.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.
        margin: by how many standard deviations a positive has to be ahead.
        lam: strength of the interpolation, above 0, see `rank`.
        interclass: share of the AP of all logits in one ranking, in [0, 1].

    Source: Rolinek et al., CVPR 2020. Differs: earlier mini-batches are not remembered,
    so a call leaves no trace. No values of margin and lam are known for logits; the
    defaults were chosen on scikit-learn's digits.
    """

    properties = LossProperties(independent=True, needs_every_class=True)

    def __init__(
        self,
        classes: int,
        *,
        margin: float = 0.1,
        lam: float = 4.0,
        interclass: float = 0.1,
    ) -> None:
        super().__init__(classes)
        self.margin = margin
        self.lam = lam
        self.interclass = interclass

    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return ap_loss(
            standardise(outputs),
            one_versus_rest(targets, self.classes),
            margin=self.margin,
            lam=self.lam,
            interclass=self.interclass,
        )
