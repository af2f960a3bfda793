"""Line 1: the value function f, a small network from phi to the predicted cost.

Source: Huang et al., CVPR 2021, Sec. 3.1. Differs: inputs and targets are standardised
on request; the paper does not mention it.
"""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

HIDDEN = (64, 32, 32, 16)


class Standardisation(NamedTuple):
    """Constants that bring phi and costs to zero mean and unit deviation.

    Attributes:
        phi_mean: shape [d].
        phi_deviation: shape [d], positive.
        cost_mean: shape [].
        cost_deviation: shape [], positive.
    """

    phi_mean: Tensor
    phi_deviation: Tensor
    cost_mean: Tensor
    cost_deviation: Tensor


def identity_standardisation(size: int) -> Standardisation:
    """Return the constants that change nothing, for phi of a given size d."""
    one = torch.ones(())
    return Standardisation(torch.zeros(size), torch.ones(size), one * 0, one)


class ValueFunction(nn.Module):
    """An MLP d-64-32-32-16-1 with batch norm and ReLU after every hidden layer.

    The generator initialises the weights; the momentum is that of batch norm's running
    statistics.
    """

    phi_mean: Tensor
    phi_deviation: Tensor
    cost_mean: Tensor
    cost_deviation: Tensor

    def __init__(
        self,
        size: int,
        generator: torch.Generator | None = None,
        *,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.size = size
        widths = (size, *HIDDEN)
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            norm = nn.BatchNorm1d(after, momentum=momentum)
            layers += [nn.Linear(before, after), norm, nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(HIDDEN[-1], 1)
        for name, value in identity_standardisation(size)._asdict().items():
            self.register_buffer(name, value)
        if generator is not None:
            self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        # torch's default for linear layers: uniform in +-1/sqrt(fan in).
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)

    @torch.no_grad()
    def standardise(self, constants: Standardisation) -> None:
        """Set the constants inputs and targets are standardised with."""
        for name, value in constants._asdict().items():
            getattr(self, name).copy_(value)

    @torch.no_grad()
    def rescale(self, mean: Tensor, deviation: Tensor) -> None:
        """Standardise costs with other constants [], without changing a prediction.

        Source: van Hasselt et al., NeurIPS 2016, "Learning values across many orders of
        magnitude" (Pop-Art).
        """
        ratio = self.cost_deviation / deviation
        self.head.weight.mul_(ratio)
        self.head.bias.mul_(ratio).add_((self.cost_mean - mean) / deviation)
        self.cost_mean.copy_(mean)
        self.cost_deviation.copy_(deviation)

    def embed(self, phi: Tensor) -> Tensor:
        """Return the embedding g(phi): phi [B, d] -> [B, 16], the last hidden layer."""
        embedding: Tensor = self.body((phi - self.phi_mean) / self.phi_deviation)
        return embedding

    def score(self, embedding: Tensor) -> Tensor:
        """Return the standardised predicted cost of embeddings [B, 16], shape [B]."""
        score: Tensor = self.head(embedding)
        return score.squeeze(1)

    def forward(self, phi: Tensor) -> Tensor:
        """Return the predicted cost in its own units: phi [B, d] -> [B]."""
        return self.score(self.embed(phi)) * self.cost_deviation + self.cost_mean
