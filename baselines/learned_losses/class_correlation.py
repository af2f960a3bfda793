"""The loss of ALA, one parameter for each pair of classes, and what steers them.

l(Phi) = -mean_n sum_j a_j (max(Phi[y_n, j], 0) log p[n, j]
                            + max(-Phi[y_n, j], 0) log(1 - p[n, j])),
a_j = 1 for the true class and 1 / (C - 1) for the others.

Source: Huang et al., ICML 2019, eq. 6 and 7. Differs: eq. 6 as it is printed, of the
family of Wu et al., NeurIPS 2018, is `literal` here,
-mean_n sigmoid(sum_j Phi[y_n, j] log p[n, j]). Its sigmoid takes the slope from
examples that are badly wrong, also at Phi = I, where the paper calls it cross-entropy.
And a negative parameter lets the sum grow without bound as p_j -> 0: the sigmoid
saturates at the least loss, and the true class has no slope. Ours is cross-entropy at
Phi = I and never negative. Its parameters do what the paper says of them: positive ones
ask for more of a class, negative ones for less. Divided by C - 1, all others together
weigh at most as much as the true class, however many there are.

All functions take several networks at once: k networks see the same n examples.
"""

import torch
from torch import Tensor
from torch.nn import functional

SLOPE = 4.0
"""What eq. 6 is multiplied by, so that a sure example has the slope of cross-entropy.

With Phi = I its gradient is p / (1 + p)^2 times that of cross-entropy: 1/4 at p = 1.
"""
SURE = -1e-6
"""Above this log-probability log(1 - p) is held constant."""


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
        count: number of networks.
        classes: C.
        noise: largest distance from the identity; values stay in [-1, 1].
        generator: source of the noise.
    """
    drawn = noise * (2 * torch.rand(count, classes, classes, generator=generator) - 1)
    symmetric = drawn.triu() + drawn.triu(1).mT
    return (torch.eye(classes) + symmetric).clamp(-1, 1)


def correlation_loss(
    log_p: Tensor,
    targets: Tensor,
    phi: Tensor,
    *,
    literal: bool = False,
    offset: Tensor | float = 0.0,
) -> Tensor:
    """Return the loss of every network, shape [...].

    Args:
        log_p: log-probabilities, shape [..., n, C].
        targets: labels, shape [n].
        phi: loss parameters, shape [..., C, C], rows by true class.
        literal: whether it is eq. 6 as it is printed, times 4.
        offset: added inside the sigmoid of `literal`, as in L2T-DLF.

    Returns:
        Values >= 0, cross-entropy where phi is the identity; if literal, in (-4, 0).
    """
    targets = targets.long()
    rows = phi[..., targets, :]
    if literal:
        return -SLOPE * ((rows * log_p).sum(-1) + offset).sigmoid().mean(-1)
    classes = log_p.shape[-1]
    true = functional.one_hot(targets, classes).bool()
    rows = rows.where(true, rows / (classes - 1))
    less = (-log_p.clamp(max=SURE).expm1()).log()
    return -(rows.relu() * log_p + (-rows).relu() * less).sum(-1).mean(-1)


def confusion(log_p: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of -log p_j over the examples of class i: eq. 7.

    Its shape is [..., C, C]. Rows of classes without an example are NaN.

    Args:
        log_p: log-probabilities, shape [..., n, C].
        targets: labels, shape [n].
    """
    members = functional.one_hot(targets.long(), log_p.shape[-1]).to(log_p)
    return -(members.T @ log_p) / members.sum(0)[:, None]
