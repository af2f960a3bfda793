"""Cross-entropy: the loss every other one is measured against."""

from torch import Tensor
from torch.nn import functional

from baselines.losses.contract import LOSSES
from metricopt.losses.contract import check_arguments


@LOSSES.register("cross-entropy")
def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean negative log-likelihood of the labels, in nats.

    Args:
        outputs: one logit of the positive class, shape [N, 1], or class logits
            [N, C].
        targets: labels, shape [N], integers in [0, max(C, 2)).

    Returns:
        Scalar in [0, inf).

    Raises:
        ShapeError: if the shapes do not go together.
        DataError: if there is no example, or a label is not one of the classes.
    """
    check_arguments(outputs, targets)
    if outputs.shape[1] == 1:
        labels = targets.to(outputs.dtype)
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], labels)
    return functional.cross_entropy(outputs, targets)
