"""What learned optimizers see of a step, brought to a common scale.

Scalars of a run have shape [...], what is made of coordinates [..., d].
"""

import torch
from torch import Tensor

DECAY = 0.9
"""Decay of running means."""
TINY = 1e-8


def normalised(values: Tensor, epsilon: float) -> Tensor:
    """Return values [..., d] over the root of epsilon + their mean square in a run."""
    mean = values.square().mean(-1, keepdim=True)
    return values * torch.rsqrt(epsilon + mean)


def running_mean(mean: Tensor, value: Tensor, decay: float = DECAY) -> Tensor:
    """Return decay * mean + (1 - decay) * value."""
    return decay * mean + (1 - decay) * value


def relative_change(value: Tensor, mean: Tensor) -> Tensor:
    """Return how far a value lies above its running mean, relative to it: [-1, 1]."""
    return ((value - mean) / (mean.abs() + TINY)).clamp(-1, 1)


def relative_loss(loss: Tensor, first: Tensor) -> Tensor:
    """Return a loss relative to the one at the start of its run, in [0, 10]."""
    return (loss / (first + TINY)).clamp(0, 10)


def gradient_size(gradient: Tensor) -> Tensor:
    """Return log10 of the root mean square of a gradient [..., d], over 4: [..., 1]."""
    mean = gradient.square().mean(-1, keepdim=True)
    # The root has no derivative at 0, where a finished run may be.
    return (mean.clamp_min(1e-30).sqrt() + TINY).log10() / 4


def time_left(step: int, horizon: int) -> float:
    """Return tanh(2 t / T - 1): about -0.76 at the start, 0.76 at the horizon."""
    return float(torch.tanh(torch.tensor(2.0 * step / horizon - 1.0)))
