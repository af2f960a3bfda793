"""Plain modules for what phi does where no layer can take it into its weights."""

from typing import Any

import torch
from torch import Tensor, nn

from metricopt.reading.meaning import Meaning
from metricopt.reading.outputs import logits_of, with_logits


class ChannelAffine(nn.Module):
    """Multiplies and shifts every channel.

    Args:
        factor: factor of every channel, shape [C].
        shift: shift of every channel, shape [C].
        axis: axis of the channels, 1 or -1.
    """

    factor: Tensor
    shift: Tensor

    def __init__(self, factor: Tensor, shift: Tensor, axis: int) -> None:
        super().__init__()
        self.axis = axis
        self.register_buffer("factor", factor)
        self.register_buffer("shift", shift)

    def forward(self, outputs: Tensor) -> Tensor:
        """Return outputs of the same shape."""
        shape = [1] * outputs.dim()
        shape[self.axis] = -1
        factor = self.factor.view(shape).to(outputs.dtype)
        return outputs * factor + self.shift.view(shape).to(outputs.dtype)


class ProbabilityShift(nn.Module):
    """Shifts the logits of probabilities, or of their logarithms.

    Args:
        offsets: offsets of every class, shape [C].
        meaning: meaning of the outputs; its link is the one of the probabilities.
    """

    offsets: Tensor

    def __init__(self, offsets: Tensor, meaning: Meaning) -> None:
        super().__init__()
        self.axis = -1 if meaning.layout == "tokens" or meaning.flat else 1
        self.link = str(meaning.link)
        limits = torch.finfo(offsets.dtype)
        self.least, self.most = limits.tiny, 1 - limits.eps / 2
        self.register_buffer("offsets", offsets)

    def forward(self, outputs: Tensor) -> Tensor:
        """Return probabilities, or their logarithms, of the same shape."""
        shape = [1] * outputs.dim()
        shape[self.axis] = -1
        offsets = self.offsets.view(shape)
        if self.link == "log-softmax":
            return torch.log_softmax(outputs + offsets, self.axis)
        if self.link == "softmax":
            logs = outputs.clamp(min=self.least).log()
            return torch.softmax(logs + offsets, self.axis)
        inside = outputs.clamp(self.least, self.most)
        return (inside.log() - torch.log1p(-inside) + offsets).sigmoid()


class Followed(nn.Module):
    """A network followed by one more module.

    Args:
        network: the network, with any inputs.
        last: what is done to its outputs.
    """

    def __init__(self, network: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.network, self.last = network, last

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return what the network returns, with the logits in it changed."""
        returned = self.network(*inputs, **named)
        return with_logits(returned, self.last(logits_of(returned)))
