"""Black-box AP loss: one minus average precision, ranked over the mini-batch."""

from torch import Tensor

from baselines.blackbox_ranking import ap_loss, standardise
from baselines.losses.base import LOSSES, RowLoss, one_versus_rest


@LOSSES.register("blackbox-ap")
class BlackboxAP(RowLoss):
    """Mean over the classes of 1 - AP, one versus rest by the logit of each class.

    Logits are standardised over the mini-batch, which margin and lam are relative to.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.
        margin: by how many standard deviations a positive has to be ahead.
        lam: strength of the interpolation, above 0, see `rank`.
        interclass: share of the AP of all logits in one ranking, in [0, 1].

    Source: Rolinek et al., CVPR 2020. Differs: no memory of earlier mini-batches, so
    that a call leaves no trace. The defaults of margin and lam were chosen on
    scikit-learn's digits, as none are known for logits.
    """

    independent = True
    needs_every_class = True

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
