"""Output offsets: one number added to every logit, beside any other adapter.

Shifting the logits is what thresholds and class priors do after training. An adapter
deep in the network can express such a plain shift badly, or not at all; with offsets
beside it, it is always within reach. Scales beside the offsets are what calibration and
regression lack.
"""

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from metricopt.adapters.applied.changed import Change
from metricopt.adapters.applied.folding import unwrapped, with_offsets
from metricopt.adapters.base import Adapter, Features, NetworkAdapter
from metricopt.adapters.batched import MIXED, RANDOM, are_close, outputs_of
from metricopt.adapters.blocks import PhiBlocks
from metricopt.adapters.group_offsets import GroupOffsets
from metricopt.adapters.offsets_alone import places, shifted
from metricopt.errors import ConfigError, ShapeError
from metricopt.reading.inputs import Inputs, count_of, selected
from metricopt.reading.meaning import PLAIN, Meaning
from metricopt.reading.outputs import (
    Outputs,
    Standard,
    each,
    joined,
    logits_of,
    parts_of,
    with_logits,
)

_CHECKED_EXAMPLES = 4


class OutputOffsets(NetworkAdapter):
    """Another adapter, with one offset for every output beside it.

    phi holds the parameters of the other adapter, then the C offsets, in the units of
    the outputs. Where outputs are probabilities, their logits are shifted, so that they
    stay probabilities. If `scaled`, C logarithms of scales follow: an output is scaled,
    then shifted. Scales that are alike are a temperature. Where the meaning of values
    has a `Standard`, offsets are in its units: far from 0, a scale would be a shift,
    first of all. Of amounts, logarithms are scaled and shifted, so that they stay
    amounts.

    Args:
        inner: the other adapter.
        example_input: network inputs, each [N, ...]; one example is enough.
        meaning: what outputs are, and where their classes are.
        outputs: number of outputs C; None to run the network on one example.
        dims: axes of what the network returns, that of the examples included; where
            `outputs` is None, what it returned has so many.
        scaled: whether there are scales.

    Raises:
        ConfigError: if the network does not return one tensor.
    """

    def __init__(
        self,
        inner: NetworkAdapter,
        example_input: Inputs,
        meaning: Meaning = PLAIN,
        outputs: int | None = None,
        *,
        dims: int = 2,
        scaled: bool = False,
    ) -> None:
        self.inner, self.meaning = inner, meaning
        # An adapter returns [N, 1] for a network that returns [N].
        self._form = replace(meaning, flat=False)
        if outputs is None:
            one = untouched_outputs(inner, selected(example_input, slice(1)))
            outputs = columns(one, meaning)
            dims = one.ndim if isinstance(one, Tensor) else dims
        self.outputs, self._dims = outputs, dims
        if not self.outputs:
            raise ConfigError(
                "output offsets need a network that returns one tensor, got a tuple"
            )
        self._kinds = 2 if scaled else 1
        if meaning.kind == "amounts":
            plain = Standard.plain(outputs, logarithms=True)
            self.standard = meaning.standard or plain
        elif scaled:
            self.standard = meaning.standard
        super().__init__(inner.network, inner.size + self._kinds * self.outputs)

    @property
    def parts(self) -> dict[str, slice]:
        """Places in phi of the other adapter, if it has any, of offsets and scales."""
        size, found = self.inner.size, {}
        if size:
            found["adapter"] = slice(size)
        return found | places(size, self.outputs, self._kinds)

    @property
    def blocks(self) -> PhiBlocks:
        """Places in phi of the blocks of the other adapter, then of what is its own."""
        own = places(self.inner.size, self.outputs, self._kinds)
        return (*self.inner.blocks, tuple(own.values()))

    def encode(self, inputs: Inputs) -> Features:
        """Return the features of the other adapter."""
        with self.detached():
            return self.inner.encode(inputs)

    def predict(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on the same N examples; see `Adapter`."""
        return self._form.outward(self._shared(features, phi), leading=2)

    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on its own n examples; see `Adapter`."""
        return self._form.outward(self._grouped(features, phi), leading=2)

    def logits(self, features: Features, phi: Tensor) -> Outputs:
        """Return what `Meaning.inward` makes of `predict`, which is logits already."""
        return self._form.normalised(self._shared(features, phi), leading=2)

    def logits_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return what `Meaning.inward` makes of `predict_grouped`."""
        return self._form.normalised(self._grouped(features, phi), leading=2)

    def changes(self, phi: Tensor) -> list[tuple[nn.Module, Change]]:
        """Return what the other adapter changes, and the outputs of the network."""

        def shift(returned: Any) -> Any:
            outputs = logits_of(returned)
            assert isinstance(outputs, Tensor)
            # A network that returns [N] has one output; else this is one example.
            apart = 1 if self.outputs == 1 else 0
            flat = outputs.reshape(1) if outputs.ndim == 0 else outputs
            flat = flat.unsqueeze(apart) if flat.ndim == 1 else flat
            # Of dense outputs, the channels are second, behind the examples.
            flat = flat[None] if flat.ndim == self._dims - 1 else flat
            moved = self._moved(flat[None], phi[None, self.inner.size :])
            back = self._form.outward(moved, leading=2)
            assert isinstance(back, Tensor)
            return with_logits(returned, back.reshape(outputs.shape))

        inner = self.inner.changes(phi[: self.inner.size])
        return [*inner, (self.network, shift)]

    def merged(self, phi: Tensor) -> nn.Module:
        """Return a copy of the network with phi in its weights, where they take it."""
        phi = phi.detach()
        with self.detached():
            network = self.inner.merged(phi[: self.inner.size])
        offsets, scales = self.affine(phi)
        return with_offsets(network, offsets, self.meaning, self._dims, scales)

    def affine(self, phi: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return what is added to outputs, [C], and what multiplies them before.

        Of logits, where outputs are probabilities, and of logarithms, where they are
        amounts. Of predicted values they are float64: far from 0, the two nearly
        cancel.
        """
        offsets, *raised = phi[self.inner.size :].view(self._kinds, -1)
        scales = raised[0].exp() if raised else None
        if self.standard is None:
            return offsets, scales
        return self.standard.affine(offsets, scales)

    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""
        inner = self.inner.describe()
        name = f"{inner['adapter']} and output offsets"
        shifted = {"adapter": name, "size": str(self.size)}
        if self.meaning.layout == "tokens":
            shifted["layout"] = self.meaning.layout
        if self.meaning.link is not None:
            shifted["link"] = self.meaning.link
        if self._kinds == 2:
            shifted["scales"] = "yes"
        if self.standard is not None:
            shifted |= self.standard.describe()
        return inner | shifted

    def _shared(self, features: Features, phi: Tensor) -> Tensor:
        inner, offsets = self._parts_of(phi)
        with self.detached():
            return self._moved(self.inner.predict(features, inner), offsets)

    def _grouped(self, features: Features, phi: Tensor) -> Tensor:
        inner, offsets = self._parts_of(phi)
        with self.detached():
            return self._moved(self.inner.predict_grouped(features, inner), offsets)

    def _moved(self, outputs: Outputs, offsets: Tensor) -> Tensor:
        """Return logits [B or 1, n, ...] with the offsets of every row, and scales."""
        return shifted(self._form.inward(outputs, leading=2), offsets, self.standard)

    def _parts_of(self, phi: Tensor) -> tuple[Tensor, Tensor]:
        if phi.ndim != 2 or phi.shape[1] != self.size or not len(phi):
            raise ShapeError(
                f"phi must have shape [B, {self.size}], B >= 1, got {tuple(phi.shape)}"
            )
        return phi[:, : self.inner.size], phi[:, self.inner.size :]


def columns(outputs: Outputs, meaning: Meaning = PLAIN) -> int:
    """Return the number of outputs C of outputs [n, ...]; 0 if they are a tuple."""
    if not isinstance(outputs, Tensor):
        return 0
    return outputs.shape[-1 if meaning.layout == "tokens" else 1]


@torch.no_grad()
def untouched_outputs(adapter: NetworkAdapter, inputs: Inputs) -> Outputs:
    """Return the outputs of a network at phi = 0 for inputs [N, ...], shape [N, C]."""
    features = adapter.encode(inputs)
    phi = torch.zeros(1, adapter.size, device=features[0].device)
    return each(lambda part: part[0], adapter.predict(features, phi))


class Unmodulated(NetworkAdapter):
    """A network as it is, with an empty phi; its outputs are the features.

    Of use beside `OutputOffsets`, for networks whose layers are not known or not within
    reach of hooks: functions, scripted and quantised networks.

    Args:
        network: the network theta; frozen and put in evaluation mode.
        example_input: network inputs, each [N, ...]; a few are enough.

    Raises:
        ConfigError: if it is not clear which tensor of what the network returns counts,
            or the network mixes the examples of a batch, or draws at random.
        ShapeError: if it does not return one output per example.
    """

    def __init__(self, network: nn.Module, example_input: Inputs) -> None:
        super().__init__(network, 0)
        few = selected(example_input, slice(_CHECKED_EXAMPLES))
        ones = torch.arange(count_of(few)).split(1)
        alone = [self._outputs(selected(few, one)) for one in ones]
        together = self._outputs(few)
        if not are_close(joined(alone, 0), together):
            steady = are_close(self._outputs(few), together)
            raise ConfigError(MIXED if steady else RANDOM)

    def encode(self, inputs: Inputs) -> Features:
        """Return the outputs of the network, each [N, C, ...], without gradient."""
        return parts_of(self._outputs(inputs))

    def predict(self, features: Features, phi: Tensor) -> Outputs:
        """Return the same outputs for every row of phi; see `Adapter`."""
        rows = len(phi)
        return _of_form([part.expand(rows, *part.shape) for part in features])

    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every row's own examples; see `Adapter`."""
        rows = len(phi)
        return _of_form([part.reshape(rows, -1, *part.shape[1:]) for part in features])

    def changes(self, phi: Tensor) -> list[tuple[nn.Module, Change]]:
        """Return no changes, as there is nothing to modulate."""
        return []

    def merged(self, phi: Tensor) -> nn.Module:
        """Return a copy of the network as it is."""
        return unwrapped(copy.deepcopy(self.network))

    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""
        return {"adapter": type(self).__name__, "size": "0"}

    @torch.no_grad()
    def _outputs(self, inputs: Inputs) -> Outputs:
        with self.detached():
            return outputs_of(self.network, inputs)


def _of_form(parts: list[Tensor]) -> Outputs:
    """Return one tensor of features alone, several as a tuple."""
    return parts[0] if len(parts) == 1 else tuple(parts)


class MeantAdapter(Adapter):
    """Another adapter, whose outputs become logits with the class axis second.

    The meaning is that of its outputs; see `Meaning.inward`.
    """

    def __init__(self, inner: Adapter, meaning: Meaning) -> None:
        self.inner, self.meaning = inner, meaning
        self.size, self.standard = inner.size, inner.standard
        self._offsets: OutputOffsets | GroupOffsets | None = None
        if isinstance(inner, OutputOffsets | GroupOffsets) and inner.meaning == meaning:
            self._offsets = inner

    @property
    def parts(self) -> dict[str, slice]:
        """Places in phi of the parts of the other adapter."""
        return self.inner.parts

    @property
    def blocks(self) -> PhiBlocks:
        """Places in phi of the blocks of the other adapter."""
        return self.inner.blocks

    def encode(self, inputs: Inputs) -> Features:
        """Return the features of the other adapter."""
        return self.inner.encode(inputs)

    def predict(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on the same N examples; see `Adapter`."""
        if self._offsets is not None:  # they shift logits: no way there and back
            return self._offsets.logits(features, phi)
        return self.meaning.inward(self.inner.predict(features, phi), leading=2)

    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on its own n examples; see `Adapter`."""
        if self._offsets is not None:
            return self._offsets.logits_grouped(features, phi)
        outputs = self.inner.predict_grouped(features, phi)
        return self.meaning.inward(outputs, leading=2)
