"""Offsets of outputs that are known already, and how outputs are scaled and shifted."""

import math

import torch
from torch import Tensor

from metricopt.adapters.base import Adapter, Features
from metricopt.reading.inputs import Inputs, tensors_of
from metricopt.reading.outputs import Outputs, Standard


class OffsetsAlone(Adapter):
    """Offsets of C outputs that are known already: no network runs.

    If `scaled`, logarithms of scales follow in phi, as in `OutputOffsets`, where there
    may be a standard, too.
    """

    def __init__(
        self, outputs: int, *, scaled: bool = False, standard: Standard | None = None
    ) -> None:
        self._outputs, self._kinds = outputs, 2 if scaled else 1
        self.standard = standard
        self.size = self._kinds * outputs

    @property
    def parts(self) -> dict[str, slice]:
        """Places in phi of the offsets and the scales."""
        return places(0, self._outputs, self._kinds)

    def encode(self, inputs: Inputs) -> Features:
        """Return the outputs, shape [N, C, ...], as they are."""
        return tensors_of(inputs)

    def predict(self, features: Features, phi: Tensor) -> Tensor:
        """Return the outputs under every phi; see `Adapter`."""
        return shifted(features[0][None], phi, self.standard)

    def predict_grouped(self, features: Features, phi: Tensor) -> Tensor:
        """Return the outputs under every phi on its own n examples; see `Adapter`."""
        outputs = features[0]
        rows = outputs.view(len(phi), -1, *outputs.shape[1:])
        return shifted(rows, phi, self.standard)


def places(start: int, outputs: int, kinds: int) -> dict[str, slice]:
    """Return places in phi of the offsets of so many outputs, and of their scales."""
    ends = range(start, start + (kinds + 1) * outputs, outputs)
    names = ("offsets", "scales")[:kinds]
    return dict(zip(names, map(slice, ends, ends[1:]), strict=True))


def shifted(
    outputs: Outputs, offsets: Tensor, standard: Standard | None = None
) -> Tensor:
    """Return outputs [B or 1, N, C, ...] with offsets [B, C] added.

    Offsets [B, 2 C] hold logarithms of scales, too.
    """
    assert isinstance(outputs, Tensor)
    shape = [len(offsets), 1, outputs.shape[2]] + [1] * (outputs.ndim - 3)
    offsets, *raised = (part.view(shape) for part in offsets.split(shape[2], 1))
    if raised:
        # An output of 0 times an infinite scale would be no number.
        greatest = min(torch.finfo(each.dtype).max for each in (outputs, offsets))
        raised = [raised[0].clamp_max(math.log(greatest) / 2)]
    if standard is None:
        scaled = _scaled(outputs, raised[0]) if raised else outputs
        return scaled + offsets.to(outputs)
    # Exact where phi is 0, and beyond the range of half precision.
    wide = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
    centre = wide.new_tensor(standard.centre).view([1, *shape[1:]])
    offsets = offsets * offsets.new_tensor(standard.unit).view([1, *shape[1:]])
    if standard.logarithms:
        # What has no logarithm stays, as does what is infinite.
        moved = (wide > 0) & wide.isfinite()
        logs = wide.where(moved, 1.0).log()
        more = offsets.to(wide)
        if raised:
            more = more + (logs - centre) * raised[0].expm1().to(wide)
        return torch.where(moved, wide * more.exp(), wide).to(outputs)
    return _scaled(wide, raised[0], centre).to(outputs) + offsets.to(outputs)


def _scaled(outputs: Tensor, raised: Tensor, centre: Tensor | None = None) -> Tensor:
    """Return outputs scaled about 0 or a centre, given the logarithms of scales."""
    # An infinite output is that of a masked class: it has no gradient by a scale.
    masked = outputs.isinf()
    finite = outputs.masked_fill(masked, 0.0)
    if centre is None:
        scaled = finite * raised.exp().to(outputs)
    else:
        scaled = finite + (finite - centre) * raised.expm1().to(outputs)
    return torch.where(masked, outputs, scaled)
