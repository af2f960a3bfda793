"""The adaptive loss of classes that stand for each other, and what it is adapted by.

l(Phi) = -mean_n sigmoid(sum_j Phi[y_n, j] log p[n, j]).

Source: Huang et al., ICML 2019, eq. 6 and 7; the family is that of Wu et al., NeurIPS
2018. All functions take several networks at once: k networks see the same n examples.
"""

import torch
from torch import Tensor
from torch.nn import functional

SLOPE = 4.0
"""What eq. 6 is multiplied by, so that a sure example has the slope of cross-entropy.

With Phi = I the gradient is p / (1 + p)^2 times that of cross-entropy: 1/4 at p = 1.
"""


def log_probabilities(outputs: Tensor) -> Tensor:
    """Return the log-probabilities of all classes, shape [..., C], C >= 2.

    Args:
        outputs: class logits [..., C], or one logit of the positive class [..., 1].
    """
    if outputs.shape[-1] > 1:
        return outputs.log_softmax(-1)
    return torch.cat(
        [functional.logsigmoid(-outputs), functional.logsigmoid(outputs)], -1
    )


def noisy_identity(
    count: int, classes: int, noise: float, generator: torch.Generator
) -> Tensor:
    """Return symmetric loss parameters near the identity, shape [count, C, C].

    Args:
        count: of networks.
        classes: C.
        noise: largest distance from the identity; values stay in [-1, 1].
        generator: source of the noise.
    """
    drawn = noise * (2 * torch.rand(count, classes, classes, generator=generator) - 1)
    symmetric = drawn.triu() + drawn.triu(1).mT
    return (torch.eye(classes) + symmetric).clamp(-1, 1)


def correlation_loss(
    log_p: Tensor, targets: Tensor, phi: Tensor, *, sigmoid: bool = True
) -> Tensor:
    """Return the loss of every network, shape [...]: eq. 6.

    Args:
        log_p: log-probabilities, shape [..., n, C].
        targets: labels, shape [n].
        phi: loss parameters, shape [..., C, C], rows by true class.
        sigmoid: whether the sum goes through a sigmoid, as in eq. 6; without it, the
            loss is cross-entropy where phi is the identity.

    Returns:
        Values in (-1, 0) with the sigmoid, any real numbers without.
    """
    inner = (phi[..., targets, :] * log_p).sum(-1)
    return -(inner.sigmoid() if sigmoid else inner).mean(-1)


def confusion(log_p: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of -log p_j over the examples of class i: eq. 7.

    Its shape is [..., C, C]. Rows of classes without an example are NaN.

    Args:
        log_p: log-probabilities, shape [..., n, C].
        targets: labels, shape [n].
    """
    members = functional.one_hot(targets.long(), log_p.shape[-1]).to(log_p)
    return -(members.T @ log_p) / members.sum(0)[:, None]
