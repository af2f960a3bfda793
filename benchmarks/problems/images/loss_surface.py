"""The loss of a network on a plane through its weights, along random directions.

Source: Li et al., Visualizing the loss landscape of neural nets, NeurIPS 2018, Sec. 4:
each filter of a direction has the norm of the network's own filter; offsets and weights
of normalisations stay as they are.
"""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from benchmarks.runs.notes import SURFACE_RADIUS, SURFACE_SIDE


def filter_normalised(network: nn.Module, generator: torch.Generator) -> list[Tensor]:
    """Return a random direction, a tensor for each weight of the network in order.

    Args:
        network: whose filters give the norms: the first dimension of matrices and
            kernels counts them. Other weights get zeros.
        generator: on the CPU.
    """
    return [_direction(weight.detach(), generator) for weight in network.parameters()]


def _direction(weight: Tensor, generator: torch.Generator) -> Tensor:
    if weight.ndim < 2:
        return torch.zeros_like(weight)
    drawn = torch.randn(weight.shape, generator=generator).to(weight)
    inner = tuple(range(1, weight.ndim))

    def norms(of: Tensor) -> Tensor:
        return torch.linalg.vector_norm(of, dim=inner, keepdim=True)

    return drawn * norms(weight) / norms(drawn)


@torch.no_grad()
def loss_surface(
    network: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    generator: torch.Generator,
    *,
    side: int = SURFACE_SIDE,
) -> Tensor:
    """Return cross-entropy on a grid around the weights, shape [side, side].

    Its middle is the network itself. Normalisations keep their running statistics.

    Args:
        network: a classifier; left as it is.
        inputs: inputs of n examples, shape [n, ...].
        targets: labels, shape [n].
        generator: draws both directions.
        side: points along each direction, odd.
    """
    own = copy.deepcopy(network).eval()
    centre = [weight.detach().clone() for weight in own.parameters()]
    directions = [filter_normalised(own, generator) for _ in range(2)]
    steps = torch.linspace(-SURFACE_RADIUS, SURFACE_RADIUS, side).tolist()
    losses = [
        _loss_at(own, centre, directions, (one, other), inputs, targets)
        for one in steps
        for other in steps
    ]
    return torch.tensor(losses).view(side, side)


def _loss_at(
    network: nn.Module,
    centre: Sequence[Tensor],
    directions: Sequence[Sequence[Tensor]],
    place: tuple[float, float],
    inputs: Tensor,
    targets: Tensor,
) -> float:
    for weight, start, *along in zip(
        network.parameters(), centre, *directions, strict=True
    ):
        weight.copy_(start + place[0] * along[0] + place[1] * along[1])
    return float(nn.functional.cross_entropy(network(inputs), targets))
