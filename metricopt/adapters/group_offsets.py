"""Offsets by group: every group of examples has offsets of the outputs of its own.

Equal rates in all groups need that, since scores of two groups rarely mean the same.
Whoever predicts with such offsets has to know the group of every example.

Source: the aim is that of Hardt et al., Equality of Opportunity in Supervised Learning,
NeurIPS 2016, Sec. 3.2. Differs: no thresholds are drawn at random.
"""

import copy
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from metricopt.adapters.applied.changed import Change
from metricopt.adapters.base import Features, NetworkAdapter
from metricopt.adapters.batched import outputs_of
from metricopt.adapters.blocks import PhiBlocks
from metricopt.errors import ConfigError, ShapeError
from metricopt.reading.inputs import Inputs, tensors_of
from metricopt.reading.meaning import PLAIN, Meaning
from metricopt.reading.outputs import Outputs, logits_of


class _Table(nn.Module):
    """Offsets [G, C], all 0, as what a module returns, so that they can be changed."""

    def __init__(self, groups: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.zeros(groups, outputs))

    def forward(self) -> Tensor:
        return self.get_buffer("offsets")


class ShiftedByGroup(nn.Module):
    """A network whose last input is the group of each example, in [0, G), shape [N].

    Args:
        network: from the other inputs to outputs, [N, C] or [N] for one; an
            `nn.Identity` where outputs are known already.
        groups: number of groups G.
        outputs: number of outputs C.
        meaning: what outputs are; the logits of probabilities are shifted, and the
            logarithms of amounts.

    Raises:
        ConfigError: if there is no group or output, or outputs are dense.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        groups: int,
        outputs: int,
        meaning: Meaning = PLAIN,
    ) -> None:
        super().__init__()
        if groups < 1 or outputs < 1:
            raise ConfigError(
                "offsets by group need a group and an output at least, got "
                f"groups={groups} and outputs={outputs}"
            )
        if meaning.is_dense:
            raise ConfigError("offsets by group need one row of outputs per example")
        self.network, self.meaning = network, meaning
        self.table = _Table(groups, outputs)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the outputs of all inputs but the last, shifted by group."""
        outputs = logits_of(self.network(*inputs[:-1]))
        assert isinstance(outputs, Tensor)
        rows = outputs[:, None] if outputs.ndim == 1 else outputs
        form = replace(self.meaning, flat=False)
        logits = form.inward(rows)
        assert isinstance(logits, Tensor)
        offsets = self.table()[inputs[-1]].to(rows)
        moved = form.outward(_moved(logits, offsets, self.meaning))
        assert isinstance(moved, Tensor)
        return moved.view_as(outputs)


def _moved(logits: Tensor, offsets: Tensor, meaning: Meaning) -> Tensor:
    """Return logits or values with offsets; of amounts, logarithms are shifted."""
    return logits * offsets.exp() if meaning.kind == "amounts" else logits + offsets


class GroupOffsets(NetworkAdapter):
    """One offset for every output and group; phi holds those of a group together.

    Args:
        network: the network theta with the groups as its last input.
    """

    network: ShiftedByGroup

    def __init__(self, network: ShiftedByGroup) -> None:
        groups, outputs = network.table().shape
        super().__init__(network, groups * outputs)
        self.groups, self.outputs = int(groups), int(outputs)
        self.meaning = network.meaning
        self._form = replace(network.meaning, flat=False)

    @property
    def parts(self) -> dict[str, slice]:
        """All of phi are offsets."""
        return {"offsets": slice(self.size)}

    @property
    def blocks(self) -> PhiBlocks:
        """Places in phi of the offsets of every group."""
        ends = range(0, self.size + 1, self.outputs)
        return tuple((slice(*pair),) for pair in pairwise(ends))

    def encode(self, inputs: Inputs) -> Features:
        """Return logits [N, C] without offsets, and the group of each example."""
        *others, groups = tensors_of(inputs)
        if bool(((groups < 0) | (groups >= self.groups)).any()):
            raise ConfigError(
                f"groups must be in [0, {self.groups - 1}], got {int(groups.min())} to "
                f"{int(groups.max())}"
            )
        given = others[0] if len(others) == 1 else tuple(others)
        with self.detached(), torch.no_grad():
            outputs = outputs_of(self.network.network, given)
        assert isinstance(outputs, Tensor)
        logits = self._form.inward(outputs)
        assert isinstance(logits, Tensor)
        return logits, groups

    def predict(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on the same N examples; see `Adapter`."""
        return self._form.outward(self.logits(features, phi), leading=2)

    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on its own n examples; see `Adapter`."""
        return self._form.outward(self.logits_grouped(features, phi), leading=2)

    def logits(self, features: Features, phi: Tensor) -> Tensor:
        """Return what `predict` does, as logits."""
        logits, groups = features
        return _moved(logits, self._offsets(phi)[:, groups].to(logits), self.meaning)

    def logits_grouped(self, features: Features, phi: Tensor) -> Tensor:
        """Return what `predict_grouped` does, as logits."""
        logits = features[0].view(len(phi), -1, self.outputs)
        own = features[1].view(len(phi), -1)
        rows = torch.arange(len(phi), device=own.device)[:, None]
        return _moved(logits, self._offsets(phi)[rows, own].to(logits), self.meaning)

    def changes(self, phi: Tensor) -> list[tuple[nn.Module, Change]]:
        """Return the table of the network, and that phi is added to it."""
        return [(self.network.table, lambda table: table + self._offsets(phi)[0])]

    def merged(self, phi: Tensor) -> nn.Module:
        """Return a copy of the network with phi in its table."""
        with self.detached():
            merged = copy.deepcopy(self.network)
        merged.table.get_buffer("offsets").copy_(self._offsets(phi.detach())[0])
        return merged

    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""
        found = {"adapter": "GroupOffsets", "size": str(self.size)}
        found["groups"] = str(self.groups)
        if self.meaning.link is not None:
            found["link"] = self.meaning.link
        if self.meaning.kind == "amounts":
            found["logarithms"] = "yes"
        return found

    def _offsets(self, phi: Tensor) -> Tensor:
        """Return the offsets of phi [B, d] or [d], [B, G, C]."""
        if phi.shape[-1] != self.size or phi.ndim > 2 or not len(phi):
            raise ShapeError(
                f"phi must have shape [B, {self.size}], B >= 1, got {list(phi.shape)}"
            )
        return phi.view(-1, self.groups, self.outputs)
