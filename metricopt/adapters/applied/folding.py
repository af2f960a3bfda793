"""Take scales and shifts of phi into weights of layers, or into a module after them."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.parametrize import is_parametrized

from metricopt.adapters.applied.changed import is_alone
from metricopt.adapters.network_cut import TRACE_ERRORS, SiteTracer
from metricopt.reading.meaning import Meaning
from metricopt.reading.outputs import logits_of, with_logits


class _ByChannel(nn.Module):
    """Changes every channel of outputs that have `dims` axes, or one less for one.

    Where one example comes without a batch, its channels are first; else they are in
    the axis 1 or -1.
    """

    def __init__(self, axis: int, dims: int) -> None:
        super().__init__()
        self.axis, self.dims = axis, dims

    def _axis(self, outputs: Tensor, channels: int) -> int:
        alone = self.axis == 1 and is_alone(outputs, self.dims, channels)
        return 0 if alone else self.axis

    def _along(self, each: Tensor, outputs: Tensor) -> Tensor:
        """Return numbers of the channels [C], to multiply or add to the outputs."""
        shape = [1] * outputs.dim()
        if shape:
            shape[self._axis(outputs, len(each))] = -1
        return each.view(shape)


class ChannelAffine(_ByChannel):
    """Multiplies and shifts every channel, by [C] each."""

    factor: Tensor
    shift: Tensor

    def __init__(self, factor: Tensor, shift: Tensor, axis: int, dims: int) -> None:
        super().__init__(axis, dims)
        self.register_buffer("factor", factor)
        self.register_buffer("shift", shift)

    def forward(self, outputs: Tensor) -> Tensor:
        """Return outputs of the same shape."""
        # Half precision may not hold what is multiplied and not yet shifted.
        precise = torch.promote_types(outputs.dtype, torch.float32)
        factor = self._along(self.factor, outputs).to(precise)
        shift = self._along(self.shift, outputs).to(precise)
        return (outputs.to(precise) * factor + shift).to(outputs.dtype)


class LinkedShift(_ByChannel):
    """Shifts what a link was applied to by offsets [C]: logits of probabilities.

    Or logits of logarithms of these, or logarithms of amounts; amounts that have none
    stay. They are multiplied by scales [C] before.
    """

    offsets: Tensor
    scales: Tensor

    def __init__(
        self, offsets: Tensor, scales: Tensor, link: str, axis: int, dims: int
    ) -> None:
        super().__init__(axis, dims)
        self.link = link
        limits = torch.finfo(offsets.dtype)
        self.least, self.most = limits.tiny, 1 - limits.eps / 2
        self.register_buffer("offsets", offsets)
        self.register_buffer("scales", scales)

    def forward(self, outputs: Tensor) -> Tensor:
        """Return probabilities, their logarithms, or amounts, of the same shape."""
        classes = self._axis(outputs, len(self.offsets))
        if self.link == "log-softmax":
            return torch.log_softmax(self._moved(outputs), classes)
        if self.link == "softmax":
            logs = outputs.clamp(min=self.least).log()
            return torch.softmax(self._moved(logs), classes)
        if self.link == "exp":
            above = (outputs > 0) & outputs.isfinite()
            logs = outputs.double().where(above, 1.0).log()
            return torch.where(above, self._moved(logs).exp().to(outputs), outputs)
        inside = outputs.clamp(self.least, self.most)
        return self._moved(inside.log() - torch.log1p(-inside)).sigmoid()

    def _moved(self, logits: Tensor) -> Tensor:
        scales, offsets = (self._along(v, logits) for v in (self.scales, self.offsets))
        return logits * scales + offsets


class Followed(nn.Module):
    """A network with any inputs, followed by one more module for its outputs."""

    def __init__(self, network: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.network, self.last = network, last

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return what the network returns, with the logits in it changed."""
        returned = self.network(*inputs, **named)
        return with_logits(returned, self.last(logits_of(returned)))


AXES = {
    nn.Linear.forward: -1,
    nn.LayerNorm.forward: -1,
    nn.Conv1d.forward: 1,
    nn.Conv2d.forward: 1,
    nn.Conv3d.forward: 1,
    _BatchNorm.forward: 1,
    nn.GroupNorm.forward: 1,
}
"""Axis of the channels in the outputs, by the `forward` of a layer; what such a layer
returns is linear in its weight, up to its bias, channel by channel."""


def folded(
    layer: nn.Module, factor: Tensor | None, shift: Tensor, axis: int, dims: int
) -> nn.Module:
    """Return a layer whose outputs are multiplied and shifted, channel by channel.

    Factor and shift are [C], a factor of None is 1; the channels are in the axis 1 or
    -1 of outputs with `dims` axes, examples included. The layer is changed in place
    where its weights can take it, else a plain module is put around it.
    """
    if not shift.any() and (factor is None or bool((factor == 1).all())):
        return layer
    weight: Tensor | None = getattr(layer, "weight", None)
    if AXES.get(type(layer).forward) != axis or weight is None or _is_watched(layer):
        whole = torch.ones_like(shift) if factor is None else factor
        return nn.Sequential(layer, ChannelAffine(whole, shift, axis, dims))
    scale = torch.ones_like(shift) if factor is None else factor
    bias: Tensor | None = getattr(layer, "bias", None)
    moved = shift.double()
    if isinstance(layer, nn.LayerNorm):
        moved = moved.expand(weight.shape)  # of several axes, the last is the channels'
    if bias is not None:
        moved = bias.detach().double() * scale.double() + moved
    layer.bias = _like(weight, moved)
    if factor is not None:
        last = isinstance(layer, nn.LayerNorm)
        spread = scale if last else scale.view(-1, *[1] * (weight.ndim - 1))
        layer.weight = _like(weight, weight.detach().double() * spread.double())
    return layer


def with_offsets(
    network: nn.Module,
    offsets: Tensor,
    meaning: Meaning,
    dims: int,
    scales: Tensor | None = None,
) -> nn.Module:
    """Return a network with an offset [C] for every class of its outputs.

    Outputs have `dims` axes, examples included. Logits, or values, are multiplied by
    scales [C] before, if there are any. The network is changed in place where its last
    layer can take them.
    """
    if not offsets.any() and (scales is None or bool((scales == 1).all())):
        return network
    axis = 1 if meaning.layout == "channels" else -1
    layer = _last_layer(network)
    if layer is not None:
        own = AXES.get(type(layer).forward)
        axis = own if own is not None and meaning.layout == "rows" else axis
    factors = torch.ones_like(offsets) if scales is None else scales
    link = "exp" if meaning.kind == "amounts" else meaning.link
    if layer is not None and link is None:
        return replaced(network, layer, folded(layer, scales, offsets, axis, dims))
    shift = (
        ChannelAffine(factors, offsets, axis, dims)
        if link is None
        else LinkedShift(offsets, factors, link, axis, dims)
    )
    if layer is None:
        return Followed(network, shift)
    return replaced(network, layer, nn.Sequential(layer, shift))


def replaced(network: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """Return a network with another module wherever one is."""
    if old is new:
        return network
    if old is network:
        return new
    for parent in list(network.modules()):
        for name, child in list(parent._modules.items()):
            if child is old:
                setattr(parent, name, new)
    return network


def unwrapped(network: nn.Module) -> nn.Module:
    """Return a network with what is distributed in it replaced by the module inside.

    A reducer waits for gradients of the parameters that were there when it was made, so
    with others the second step of training fails.
    """
    for module in list(network.modules()):
        if isinstance(module, DistributedDataParallel):
            network = replaced(network, module, module.module)
    return network


def _last_layer(network: nn.Module) -> nn.Module | None:
    """Return the module whose outputs are those of the network, if it runs once."""
    if not list(network.children()):
        return network
    layers = [module for module in network.modules() if not list(module.children())]
    try:
        graph = SiteTracer(layers).trace(network, _defaults(network))
    except TRACE_ERRORS:
        return None
    last = graph.output_node().args[0]
    called = [
        (node, network.get_submodule(str(node.target)))
        for node in graph.nodes
        if node.op == "call_module"
    ]
    found = [module for node, module in called if node is last]
    alone = found and sum(module is found[0] for _, module in called) == 1
    return found[0] if alone else None


def _defaults(network: nn.Module) -> dict[str, Any]:
    """Return the arguments of a network that are not given when it is called."""
    arguments = inspect.signature(network.forward).parameters.values()
    return {
        each.name: each.default for each in arguments if each.default is not each.empty
    }


def _is_watched(layer: nn.Module) -> bool:
    """Return whether something else makes the weights or sees the outputs."""
    hooks = layer._forward_hooks or layer._forward_pre_hooks
    return bool(hooks) or is_parametrized(layer)


def _like(weight: Tensor, values: Tensor) -> nn.Parameter:
    kept = values.to(weight.dtype).to(weight.device)
    return nn.Parameter(kept, requires_grad=weight.requires_grad)
