"""An adapter whose outputs have the form that methods read."""

from torch import Tensor

from metricopt.adapters.base import Adapter, Features
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.reading.inputs import Inputs
from metricopt.reading.meaning import Meaning
from metricopt.reading.outputs import Outputs


class MeantAdapter(Adapter):
    """Another adapter, whose outputs become logits with the class axis second.

    Args:
        inner: adapter of a network that returns its outputs in another form.
        meaning: meaning of these outputs; see `Meaning.inward`.
    """

    def __init__(self, inner: Adapter, meaning: Meaning) -> None:
        self.inner, self.meaning = inner, meaning
        self.size = inner.size
        self._offsets: OutputOffsets | None = None
        if isinstance(inner, OutputOffsets) and inner.meaning == meaning:
            self._offsets = inner

    @property
    def parts(self) -> dict[str, slice]:
        """Places in phi of the parts of the other adapter."""
        return self.inner.parts

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
