"""The value function f: phi -> predicted cost, its objective and its triplet mining.

Source: Huang et al., CVPR 2021, Sec. 3.1, eq. (2). Differs: inputs and targets are
standardised on request; the paper does not mention it.
"""

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from metricopt.errors import ConfigError, DataError
from metricopt.files import read_tensors, told, write_atomically

GAMMA = 10.0
"""The paper's weight of the regression term, for costs in their own units."""
HIDDEN = (64, 32, 32, 16)
FISHER_THRESHOLD = 2.0


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

    Args:
        size: number d of adapter parameters.
        generator: initialises the weights.
        momentum: of batch norm's running statistics.
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
        """Standardise costs with other constants, without changing a prediction.

        Source: van Hasselt et al., NeurIPS 2016, "Learning values across many orders
        of magnitude" (Pop-Art).

        Args:
            mean: of the costs from now on, shape [].
            deviation: theirs, shape [], positive.
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


def regression_term(prediction: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return L_regress = sum_t |f_t - M_t| / sigma_t / sum_t 1 / sigma_t.

    It is the mean over trajectories: one whose costs vary little, and are sure for that
    reason, weighs no more than another.

    Args:
        prediction: f(phi_t), shape [T] or [B, T].
        mean: interpolated cost M_t, of that shape.
        deviation: its standard deviation sigma_t, of that shape, positive.
    """
    weight = 1.0 / deviation
    error = (prediction - mean).abs() * weight
    return (error.sum(-1) / weight.sum(-1)).mean()


def fisher_ratio(mean: Tensor, deviation: Tensor) -> Tensor:
    """Return r_tt' = (M_t - M_t')^2 / (sigma_t^2 + sigma_t'^2), shape [N, N]."""
    gap = mean[:, None] - mean[None, :]
    return gap.square() / (deviation.square()[:, None] + deviation.square()[None, :])


def fisher_sets(mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks of the positives (r < 2, not itself) and negatives (r >= 2).

    Returns:
        Two boolean masks, shape [N, N], row = anchor.
    """
    ratio = fisher_ratio(mean, deviation)
    itself = torch.eye(len(mean), dtype=torch.bool, device=mean.device)
    return (ratio < FISHER_THRESHOLD) & ~itself, ratio >= FISHER_THRESHOLD


def embedding_distances(embedding: Tensor) -> Tensor:
    """Return Euclidean distances D_tt' of embeddings [N, E], shape [N, N]."""
    square = embedding.square().sum(1)
    gram = embedding @ embedding.T
    # A floor keeps the gradient of the root finite where embeddings coincide.
    return (square[:, None] + square[None, :] - 2 * gram).clamp_min(1e-12).sqrt()


def ordinal_term(embedding: Tensor, triplets: Tensor) -> Tensor:
    """Return L_oe = mean log(1 + exp(D(t, t_p) - D(t, t_n))) over triplets.

    Args:
        embedding: g(phi_t), shape [N, E].
        triplets: anchor, positive, negative, shape [M, 3]; zero if M = 0.
    """
    if len(triplets) == 0:
        return embedding.sum() * 0.0
    anchor, positive, negative = (embedding[index] for index in triplets.unbind(1))
    near = (anchor - positive).square().sum(1).clamp_min(1e-24).sqrt()
    far = (anchor - negative).square().sum(1).clamp_min(1e-24).sqrt()
    return functional.softplus(near - far).mean()


def value_loss(
    prediction: Tensor,
    embedding: Tensor,
    target: tuple[Tensor, Tensor],
    triplets: Tensor,
    gamma: float = GAMMA,
) -> Tensor:
    """Return L_v = gamma L_regress + L_oe, eq. (2).

    Args:
        prediction: f(phi_t), shape [T] or [B, T].
        embedding: g(phi_t), shape [N, E].
        target: mean and deviation of the interpolated cost, each like the prediction.
        triplets: mined triplets, shape [M, 3].
        gamma: weight of the regression term.
    """
    return gamma * regression_term(prediction, *target) + ordinal_term(
        embedding, triplets
    )


def hardest_triplets(distance: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Return the farthest positive and nearest negative of every anchor that has both.

    Args:
        distance: shape [N, N].
        positive: mask of positives, shape [N, N].
        negative: mask of negatives, shape [N, N].

    Returns:
        Triplets (anchor, positive, negative), shape [M, 3].
    """
    far = distance.masked_fill(~positive, -torch.inf).argmax(1)
    near = distance.masked_fill(~negative, torch.inf).argmin(1)
    return _triplets(far, near, positive.any(1) & negative.any(1))


def multi_similarity_triplets(
    distance: Tensor,
    positive: Tensor,
    negative: Tensor,
    generator: torch.Generator,
    margin: float = 0.1,
) -> Tensor:
    """Return one informative positive and negative per anchor, drawn uniformly.

    Informative positives are farther than the nearest negative minus a margin.
    Informative negatives are nearer than the farthest positive plus a margin. If there
    are none, the hardest is taken. Always taking the hardest collapses the embedding.

    Source: Wang et al., CVPR 2019, Sec. 3.3, on distances.
    """
    nearest = distance.masked_fill(~negative, torch.inf).amin(1, keepdim=True)
    farthest = distance.masked_fill(~positive, -torch.inf).amax(1, keepdim=True)
    hard_positive = positive & (distance > nearest - margin)
    hard_negative = negative & (distance < farthest + margin)
    chosen_positive = _draw(hard_positive, positive & (distance >= farthest), generator)
    chosen_negative = _draw(hard_negative, negative & (distance <= nearest), generator)
    return _triplets(
        chosen_positive, chosen_negative, positive.any(1) & negative.any(1)
    )


def random_triplets(
    positive: Tensor, negative: Tensor, generator: torch.Generator
) -> Tensor:
    """Return one positive and negative per anchor, drawn uniformly from the sets."""
    return _triplets(
        _draw(positive, positive, generator),
        _draw(negative, negative, generator),
        positive.any(1) & negative.any(1),
    )


def _draw(mask: Tensor, fallback: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one column per row of a mask, or of the fallback if the row is empty."""
    mask = torch.where(mask.any(1, keepdim=True), mask, fallback)
    keys = torch.rand(mask.shape, generator=generator, device=mask.device)
    # A key may be exactly zero, so what is masked must lie below it.
    return keys.masked_fill(~mask, -1.0).argmax(1)


def _triplets(positive: Tensor, negative: Tensor, usable: Tensor) -> Tensor:
    anchor = torch.arange(len(positive), device=positive.device)
    return torch.stack([anchor, positive, negative], dim=1)[usable]


def save_value_function(value_function: ValueFunction, path: Path) -> None:
    """Write weights, statistics and standardisation as one safetensors file."""
    write_atomically(path, save(value_function.state_dict()))


def load_value_function(path: Path) -> ValueFunction:
    """Read what `save_value_function` wrote, in evaluation mode.

    Raises:
        ConfigError: if the file does not hold a value function.
    """
    try:
        state = read_tensors(path).tensors
        if "phi_mean" not in state:
            raise DataError("it has no 'phi_mean'")
        value_function = ValueFunction(state["phi_mean"].numel())
        value_function.load_state_dict(state)
    except (OSError, DataError, RuntimeError) as error:
        raise ConfigError(f"{path} holds no value function: {told(error)}") from error
    return value_function.eval()
