"""Several networks of one architecture, trained side by side on the same examples."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from baselines.training.randomness import draws_globally


class Children(nn.Module):
    """k networks as one: outputs [n, k, C].

    Args:
        networks: networks of one architecture; copied.
        batched: whether their weights are stacked and every layer computes all of them
            at once. That is faster for small networks, where the time goes into calls;
            for convolutions it is not.
    """

    def __init__(self, networks: Sequence[nn.Module], *, batched: bool = False) -> None:
        super().__init__()
        self.batched = batched
        # Stacked, their layers are not among the modules of this one.
        self.draws_globally = any(map(draws_globally, networks))
        copies = [copy.deepcopy(network) for network in networks]
        self._shapes = copies[:1] if batched else copies
        if not batched:
            self.networks = nn.ModuleList(copies)
            return
        weights, buffers = stack_module_state(copies)  # type: ignore[arg-type]
        self._names = list(weights), list(buffers)
        # Parameters of a module may have no dots in their names.
        self.weights = nn.ParameterList(weights.values())
        for place, buffer in enumerate(buffers.values()):
            self.register_buffer(f"buffer{place}", buffer)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of all networks, shape [n, k, C]."""
        if not self.batched:
            return torch.stack([network(inputs) for network in self.networks], 1)
        shape = self._shapes[0].train(self.training)

        def call(weights: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            outputs: Tensor = functional_call(shape, (weights, buffers), (inputs,))
            return outputs

        run = torch.vmap(call, randomness="different", out_dims=1)
        outputs: Tensor = run(*self._stacked())
        return outputs

    def network(self, place: int) -> nn.Module:
        """Return a copy of one network, in evaluation mode."""
        if not self.batched:
            return copy.deepcopy(self.networks[place]).eval()
        found = copy.deepcopy(self._shapes[0])
        parts: dict[str, Tensor] = {}
        for stacked in self._stacked():
            parts |= {name: value[place].detach() for name, value in stacked.items()}
        found.load_state_dict(parts, strict=False)
        return found.eval()

    def _stacked(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        weights, buffers = self._names
        kept = [getattr(self, f"buffer{place}") for place in range(len(buffers))]
        return (
            dict(zip(weights, self.weights, strict=True)),
            dict(zip(buffers, kept, strict=True)),
        )


def siblings(network: nn.Module, count: int) -> list[nn.Module]:
    """Return a network and others like it with random weights.

    Each tensor that learns has its numbers in random order: of a network that is not
    trained yet, these have the distribution they were drawn from, whoever drew them.
    The order is drawn from torch's global generator. Statistics of batch norm begin
    anew.
    """
    found = [network]
    for _ in range(count - 1):
        other = copy.deepcopy(network)
        for layer in other.modules():
            reset = getattr(layer, "reset_running_stats", None)
            if callable(reset):
                reset()
        with torch.no_grad():
            for weight in other.parameters():
                if weight.requires_grad:
                    order = torch.randperm(weight.numel()).to(weight.device)
                    weight.copy_(weight.flatten()[order].view_as(weight))
        found.append(other)
    return found
