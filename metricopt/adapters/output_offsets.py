"""Output offsets: one number added to every logit, beside any other adapter.

Shifting the logits is what thresholds and class priors do after training. An adapter
deep in the network can express such a plain shift badly, or not at all; with offsets
beside it, it is always within reach.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from metricopt.adapters.base import Adapter, Features
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.errors import ConfigError, ShapeError
from metricopt.meaning.contract import PLAIN, Meaning
from metricopt.outputs import Outputs, each


class OutputOffsets(NetworkAdapter):
    """Another adapter, with one offset for every output beside it.

    phi holds the parameters of the other adapter, then the C offsets, in the units of
    the outputs. Where outputs are probabilities, their logits are shifted, so that they
    stay probabilities.

    Args:
        inner: the other adapter.
        example_input: network inputs, shape [N, ...]; one example is enough.
        meaning: what outputs are, and where their classes are.

    Attributes:
        inner: the other adapter.
        outputs: number of outputs C.
        meaning: what outputs are.

    Raises:
        ConfigError: if the network does not return one tensor.
    """

    def __init__(
        self, inner: NetworkAdapter, example_input: Tensor, meaning: Meaning = PLAIN
    ) -> None:
        self.inner, self.meaning = inner, meaning
        # An adapter returns [N, 1] for a network that returns [N].
        self._form = replace(meaning, flat=False)
        self.outputs = columns(inner, example_input, meaning)
        if not self.outputs:
            raise ConfigError(
                "output offsets need a network that returns one tensor, got a tuple"
            )
        super().__init__(inner.network, inner.size + self.outputs)

    @property
    def parts(self) -> dict[str, slice]:
        """Places in phi of the other adapter, and of the offsets."""
        size = self.inner.size
        return {"adapter": slice(size), "offsets": slice(size, self.size)}

    def encode(self, inputs: Tensor) -> Features:
        """Return the features of the other adapter."""
        with self._detached():
            return self.inner.encode(inputs)

    def predict(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on the same N examples; see `Adapter`."""
        inner, offsets = self._parts_of(phi)
        with self._detached():
            return self._moved(self.inner.predict(features, inner), offsets)

    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every phi on its own n examples; see `Adapter`."""
        inner, offsets = self._parts_of(phi)
        with self._detached():
            outputs = self.inner.predict_grouped(features, inner)
            return self._moved(outputs, offsets)

    def hooks(self, phi: Tensor) -> list[RemovableHandle]:
        """Put the hooks of the other adapter into the network, and the offsets."""

        def shift(_: object, __: object, outputs: Tensor) -> Tensor:
            # A network that returns [N] has one output.
            flat = outputs[:, None] if outputs.ndim == 1 else outputs
            moved = self._moved(flat[None], phi[None, self.inner.size :])
            return moved.reshape(outputs.shape)

        inner = self.inner.hooks(phi[: self.inner.size])
        return [*inner, self.network.register_forward_hook(shift)]

    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""
        inner = self.inner.describe()
        name = f"{inner['adapter']} and output offsets"
        shifted = {"adapter": name, "size": str(self.size)}
        if not self.meaning.is_plain:
            shifted["outputs"] = f"{self.meaning.layout} {self.meaning.link}"
        return inner | shifted

    def _moved(self, outputs: Outputs, offsets: Tensor) -> Tensor:
        """Return outputs [B or 1, n, ...] with the offsets [B, C] of every row."""
        moved = _shifted(self._form.inward(outputs, leading=2), offsets)
        back = self._form.outward(moved, leading=2)
        assert isinstance(back, Tensor)
        return back

    def _parts_of(self, phi: Tensor) -> tuple[Tensor, Tensor]:
        if phi.ndim != 2 or phi.shape[1] != self.size or not len(phi):
            raise ShapeError(
                f"phi must have shape [B, {self.size}], B >= 1, got {tuple(phi.shape)}"
            )
        return phi[:, : self.inner.size], phi[:, self.inner.size :]


class OffsetsAlone(Adapter):
    """Offsets of outputs that are known already: no network runs.

    Args:
        outputs: number of outputs C.
    """

    def __init__(self, outputs: int) -> None:
        self.size = outputs

    def encode(self, inputs: Tensor) -> Features:
        """Return the outputs, shape [N, C, ...], as they are."""
        return (inputs,)

    def predict(self, features: Features, phi: Tensor) -> Tensor:
        """Return the outputs under every phi; see `Adapter`."""
        return _shifted(features[0][None], phi)

    def predict_grouped(self, features: Features, phi: Tensor) -> Tensor:
        """Return the outputs under every phi on its own n examples; see `Adapter`."""
        outputs = features[0]
        return _shifted(outputs.view(len(phi), -1, *outputs.shape[1:]), phi)


def _shifted(outputs: Outputs, offsets: Tensor) -> Tensor:
    """Return outputs [B or 1, N, C, ...] with offsets [B, C] added."""
    assert isinstance(outputs, Tensor)
    shape = [len(offsets), 1, -1] + [1] * (outputs.ndim - 3)
    return outputs + offsets.view(shape).to(outputs.dtype)


def columns(
    adapter: NetworkAdapter, example_input: Tensor, meaning: Meaning = PLAIN
) -> int:
    """Return the number of outputs C of an adapted network; 0 if it returns a tuple.

    Args:
        adapter: of the network.
        example_input: network inputs, shape [N, ...]; one example is enough.
        meaning: says where the classes are.
    """
    outputs = meaning.inward(untouched_outputs(adapter, example_input[:1]))
    return outputs.shape[1] if isinstance(outputs, Tensor) else 0


@torch.no_grad()
def untouched_outputs(adapter: NetworkAdapter, inputs: Tensor) -> Outputs:
    """Return the outputs of a network at phi = 0 for inputs [N, ...], shape [N, C]."""
    phi = torch.zeros(1, adapter.size, device=inputs.device)
    return each(lambda part: part[0], adapter.predict(adapter.encode(inputs), phi))
