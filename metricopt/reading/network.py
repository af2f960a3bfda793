"""Before anything runs: is there what makes outputs differ from those of later runs?"""

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from metricopt.adapters.applied.changed import is_changed
from metricopt.errors import ConfigError


def checked_network(network: nn.Module) -> nn.Module:
    """Return a network; refuse autocast, and layers or weights it cannot work with.

    Args:
        network: the network theta. What `torch.compile` made of it follows it once phi
            is applied, and stands for it here.

    Raises:
        ConfigError: if a result is applied to the network, autocast is on, the weights
            cannot be used with gradients, or a layer takes its statistics from the
            batch.
    """
    network = getattr(network, "_orig_mod", network)
    if is_changed(network):
        raise ConfigError(
            "a result is applied to this network: call its remove() before finetune"
        )
    kinds = {weight.device.type for weight in network.parameters()} | {"cpu"}
    on = [kind for kind in sorted(kinds) if torch.is_autocast_enabled(kind)]
    if on:
        raise ConfigError(
            f"torch.autocast({on[0]!r}) must be off around finetune, as it would round "
            "phi, too: put it into the forward of the network"
        )
    for name, weight in network.named_parameters():
        if is_lazy(weight):
            raise ConfigError(
                f"the weight {name!r} has no shape yet: run the network once before"
            )
        if weight.is_inference():
            raise ConfigError(
                f"the weight {name!r} was made in torch.inference_mode(), so that no "
                "gradient can pass it: build the network outside of it"
            )
    for name, module in network.named_modules():
        if isinstance(module, _BatchNorm) and module.running_mean is None:
            raise ConfigError(
                f"layer {name!r}, {type(module).__name__}, has no running statistics, "
                "so outputs depend on which examples share a batch: make it with "
                "track_running_stats=True and train it, or use a normalisation of "
                "single examples"
            )
    return network
