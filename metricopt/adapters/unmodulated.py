"""A network without a layer to modulate: its outputs are computed once."""

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from metricopt.adapters.base import Features
from metricopt.adapters.batched import MIXES, are_close, by_row
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.errors import ConfigError
from metricopt.inputs import Inputs, call, count_of, each_input, selected
from metricopt.outputs import Outputs, each, joined

_CHECKED_EXAMPLES = 4


class Unmodulated(NetworkAdapter):
    """A network as it is, with an empty phi; its outputs are the features.

    Of use beside `OutputOffsets`, for networks whose layers are not known or not within
    reach of hooks: functions, scripted and quantised networks.

    Args:
        network: the network theta; frozen and put in evaluation mode.
        example_input: network inputs, each [N, ...]; a few are enough.

    Raises:
        ConfigError: if it is not clear which tensor of what the network returns counts,
            or the network mixes the examples of a batch.
        ShapeError: if it does not return one output per example.
    """

    def __init__(self, network: nn.Module, example_input: Inputs) -> None:
        super().__init__(network, 0)
        few = selected(example_input, slice(_CHECKED_EXAMPLES))
        places = torch.arange(count_of(few)).split(1)
        alone = [self._outputs(selected(few, place)) for place in places]
        if not are_close(self._outputs(few), joined(alone, 0)):
            raise ConfigError(MIXES)

    def encode(self, inputs: Inputs) -> Features:
        """Return the outputs of the network, each [N, C, ...], without gradient."""
        outputs = self._outputs(inputs)
        return (outputs,) if isinstance(outputs, Tensor) else outputs

    def predict(self, features: Features, phi: Tensor) -> Outputs:
        """Return the same outputs for every row of phi; see `Adapter`."""
        rows = len(phi)
        return _same_form([part.expand(rows, *part.shape) for part in features])

    def predict_grouped(self, features: Features, phi: Tensor) -> Outputs:
        """Return the outputs of every row's own examples; see `Adapter`."""
        rows = len(phi)
        return _same_form(
            [part.reshape(rows, -1, *part.shape[1:]) for part in features]
        )

    def hooks(self, phi: Tensor) -> list[RemovableHandle]:
        """Return no hooks, as there is nothing to modulate."""
        return []

    def describe(self) -> dict[str, str]:
        """Return the settings that give phi its meaning, apart from theta."""
        return {"adapter": type(self).__name__, "size": "0"}

    @torch.no_grad()
    def _outputs(self, inputs: Inputs) -> Outputs:
        # Cloned, as a network may write on its inputs.
        with self._detached():
            returned = call(self.network, each_input(Tensor.clone, inputs))
        return each(lambda part: part[0], by_row(returned, 1, count_of(inputs)))


def _same_form(parts: list[Tensor]) -> Outputs:
    """Return one tensor of features alone, several as a tuple."""
    return parts[0] if len(parts) == 1 else tuple(parts)
