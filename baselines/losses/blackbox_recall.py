"""Black-box recall loss: every example is a query over its class scores."""

from torch import Tensor
from torch.nn.functional import pad

from baselines.losses.blackbox_ranking import recall_loss, standardise
from baselines.losses.contract import LOSSES
from metricopt.losses.contract import RowLoss, one_versus_rest


@LOSSES.register("blackbox-recall")
class BlackboxRecall(RowLoss):
    """Mean weight of the number of classes that score above the label.

    One logit z stands for the two class scores (0, z). Scores are standardised over
    the mini-batch first; margin and lam apply after that.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.
        margin: by how many standard deviations the label has to be ahead.
        lam: strength of the interpolation, above 0, see `rank`. It applies to the loss
            and plain ranks of one query, so the size of the mini-batch does not matter.

    Source: Rolinek et al., CVPR 2020, recall with log(1 + log(1 + x)). Differs: theirs
    ranks images. Here every example is a query over its classes, which makes it a loss
    for the error rate. No values of margin and lam are known for logits; the defaults
    were chosen on scikit-learn's digits.
    """

    def __init__(self, classes: int, *, margin: float = 0.5, lam: float = 50.0) -> None:
        super().__init__(classes)
        self.margin = margin
        self.lam = lam

    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        scores = pad(outputs, (1, 0)) if self.classes == 1 else outputs
        relevant = one_versus_rest(targets, scores.shape[-1])
        # The gradient of a normalised rank is L / N times that of its query's own loss.
        lam = self.lam * scores.shape[-2] / scores.shape[-1]
        return recall_loss(standardise(scores), relevant, margin=self.margin, lam=lam)
