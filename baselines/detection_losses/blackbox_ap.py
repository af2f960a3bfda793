"""Black-box AP loss of a detector: every class ranks the regions of a mini-batch."""

import torch
from torch import Tensor

from baselines.losses.blackbox_ranking import ap_loss, standardise
from metricopt.detection.region_outputs import RegionOutputs
from metricopt.errors import require_ranges
from metricopt.losses.detection import DetectionLoss


class DetectionAP(DetectionLoss):
    """Mean of 1 - AP over the classes instead of cross-entropy; boxes as ever.

    Logits are standardised over the mini-batch first; margin and lam apply after that.

    Args:
        margin: by how many standard deviations a region with the object has to be
            ahead, at least 0.
        lam: strength of the interpolation, above 0.
        interclass: share of the AP of all logits in one ranking, in [0, 1].

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Rolinek et al., CVPR 2020, Sec. 5.3. Differs: no earlier mini-batches are
    remembered. Their margin, lam and interclass are not known.
    """

    def __init__(
        self, *, margin: float = 0.02, lam: float = 0.5, interclass: float = 0.1
    ) -> None:
        super().__init__()
        self.margin, self.lam, self.interclass = margin, lam, interclass
        ranges = {"margin": ">= 0", "lam": "> 0", "interclass": "in [0, 1]"}
        require_ranges("the AP loss", vars(self), **ranges)

    def of_classes(self, logits: Tensor, labels: Tensor, present: Tensor) -> Tensor:
        """Return the AP loss of every row, shape [B].

        Args:
            logits: logits of R regions, the background first, shape [B, R, C + 1].
            labels: labels of the regions, 0 for the background, shape [B, R].
            present: which regions count, bool, shape [B, R].
        """
        kinds = torch.arange(1, logits.shape[-1], device=labels.device)
        present = present[..., None]
        relevant = (labels[..., None] == kinds) & present
        logits = logits[..., 1:]
        # A region that is not there ranks last, and its logits are no part of a mean.
        least = logits.detach().masked_fill(~present, torch.inf).amin(1, keepdim=True)
        scores = standardise(torch.where(present, logits, least))
        return ap_loss(
            scores,
            relevant,
            margin=self.margin,
            lam=self.lam,
            interclass=self.interclass,
        )

    def _of_classes(self, found: RegionOutputs, labels: Tensor) -> Tensor:
        rows = found.logits.flatten(1, 2), labels.flatten(1), found.present.flatten(1)
        return self.of_classes(*rows)
