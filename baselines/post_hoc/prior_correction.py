"""Prior correction: log-odds of the classes as they are where a network is deployed.

A network trained on mini-batches with other class shares than the deployment has is
off by the log ratio of the shares. No metric is queried.

Source: Saerens et al., Neural Computation 2002, outputs adjusted to known priors.
Differs: the deployment shares are those of the observe labels, which are known, so none
are estimated.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.errors import DataError, ShapeError


@dataclass(frozen=True)
class PriorCorrection:
    """What is added to the logits of every class.

    Attributes:
        log_ratio: log of deployment share over training share, float64, shape [K].
    """

    log_ratio: Tensor

    @property
    def is_trivial(self) -> bool:
        """Whether all decisions stay as they are, because the shares are equal."""
        spread = self.log_ratio.max() - self.log_ratio.min()
        return bool(spread <= 1e-12)

    def shift(self, outputs: Tensor) -> Tensor:
        """Return corrected logits.

        Args:
            outputs: logits, shape [..., N, C], with C = K, or C = 1 and K = 2.

        Raises:
            ShapeError: if the classes are not as many as the shares.
        """
        count, single = len(self.log_ratio), outputs.shape[-1] == 1
        if outputs.shape[-1] != count and not (single and count == 2):
            raise ShapeError(
                f"shares of {count} classes need as many outputs, or one logit for two "
                f"classes, got {list(outputs.shape)}"
            )
        added = self.log_ratio.to(outputs)
        return outputs + (added[1] - added[0] if single else added)


def uniform_shares(classes: int) -> Tensor:
    """Return equal shares of all classes, float64, shape [classes]."""
    return torch.full((classes,), 1 / classes, dtype=torch.float64)


def correct_prior(training: Tensor, deployment: Tensor) -> PriorCorrection:
    """Return the correction from training shares [K] to deployment shares [K].

    Raises:
        ShapeError: if there are not as many training as deployment shares.
        DataError: if a share is 0: its logarithm is infinite.
    """
    if training.shape != deployment.shape:
        raise ShapeError(
            f"a prior correction needs as many training as deployment shares, got "
            f"{len(training)} and {len(deployment)}"
        )
    for name, shares in (("training", training), ("deployment", deployment)):
        if bool((shares <= 0).any()):
            raise DataError(
                f"a prior correction needs {name} shares above 0, got {shares.tolist()}"
            )
    return PriorCorrection((deployment / training).log())
