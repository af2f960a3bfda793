"""Before any query: does a network run on the inputs, and do so the same later?"""

from collections.abc import Callable
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from metricopt.adapters.applied.changed import is_changed
from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.network_cut import TRACE_ERRORS
from metricopt.adapters.output_offsets import untouched_outputs
from metricopt.errors import ConfigError, DataError, MetricOptError, described
from metricopt.reading.inputs import Inputs, described_inputs, tensors_of
from metricopt.reading.outputs import Outputs, of_examples, parts_of
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import Split


def require_defaults() -> None:
    """Raise ConfigError for a default device or dtype of torch that is of no use here.

    Generators and small tensors are made on the default device, and stay on the CPU.
    Linear systems need 32 bits or more.
    """
    device = torch.get_default_device()
    if device.type != "cpu":
        raise ConfigError(
            f"expected the default device cpu, got {device}: call "
            "torch.set_default_device('cpu') and move the model itself, if there is one"
        )
    dtype = torch.get_default_dtype()
    if dtype not in (torch.float32, torch.float64):
        raise ConfigError(
            f"expected the default dtype float32 or float64, got {dtype}: call "
            "torch.set_default_dtype(torch.float32) and convert the model itself, if "
            "there is one"
        )


def checked_network(network: nn.Module) -> nn.Module:
    """Return a network; refuse autocast, and layers or weights it cannot work with.

    What `torch.compile` made of a network follows it once phi is applied, and stands
    for it here.

    Raises:
        ConfigError: if torch's default device or dtype is of no use, a result is
            applied to the network, autocast is on, the weights cannot be used with
            gradients, or a layer takes its statistics from the batch.
    """
    require_defaults()
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
    for name, held in chain(network.named_parameters(), network.named_buffers()):
        if is_lazy(held):
            kind = "weight" if isinstance(held, nn.Parameter) else "buffer"
            raise ConfigError(
                f"the {kind} {name!r} has no shape yet: run the network once before"
            )
    for name, weight in network.named_parameters():
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


FEW = 4
"""Examples of the first run."""
SHORT = 200
"""Most characters of another error that a message repeats."""
T = TypeVar("T")


def first_run(run: Callable[[], T], network: nn.Module, inputs: Inputs, name: str) -> T:
    """Return what a function does that runs a network for the first time on inputs.

    DataError is raised if the network does not run; the message has the dtype and the
    shape of the inputs and of the weights of the first layer.
    """
    try:
        return run()
    except MetricOptError:
        raise
    except TRACE_ERRORS as error:
        text = " ".join(str(error).split())[:SHORT]
        raise DataError(
            f"the network cannot run on the {name} inputs, {described_inputs(inputs)}: "
            f"{_first_layer(network, inputs)}; {type(error).__name__}: {text}"
        ) from error


def check_finite(adapter: NetworkAdapter, examples: Examples, name: str) -> None:
    """Raise DataError if a network cannot take inputs of a split that are not finite.

    It runs on them untouched, if there are any, and has to return what is finite.
    """
    strange = _not_finite(examples)
    if not len(strange):
        return
    inputs, network = examples.batch(strange[:FEW]), adapter.network
    outputs = first_run(
        lambda: untouched_outputs(adapter, inputs), network, inputs, name
    )
    if not all(bool(part.isfinite().all()) for part in parts_of(outputs)):
        raise DataError(
            f"the {name} inputs must be finite, as the network does not return finite "
            f"outputs for others, got NaN or infinity in {len(strange)} of "
            f"{len(examples)} examples, first in example {int(strange[0])}"
        )


def check_outputs(outputs: Outputs, name: str) -> None:
    """Raise DataError for NaN in outputs [1, N, ...]; infinity may be meant."""
    for part in parts_of(outputs):
        wrong = part[0][:, None].flatten(1).isnan().any(1)
        if bool(wrong.any()):
            raise DataError(
                "the network must return numbers, got NaN for "
                f"{of_examples(wrong, f'{name} examples')}"
            )


def _not_finite(examples: Examples) -> Tensor:
    """Return the places [n] of inputs in memory with NaN or infinity."""
    held = tensors_of(examples.inputs) if isinstance(examples, Split) else ()
    # A sum is not finite if one of its terms is not; no mask of all numbers is needed.
    sums = [
        part.reshape(len(part), -1).sum(1) for part in held if part.is_floating_point()
    ]
    if not sums:
        return torch.empty(0, dtype=torch.int64)
    return (~torch.stack(sums).isfinite().all(0)).nonzero()[:, 0]


def _first_layer(network: nn.Module, inputs: Inputs) -> str:
    """Return what the weights of the first layer say of its inputs."""
    for name, module in network.named_modules():
        weights = list(module.parameters(recurse=False))
        if not weights or list(module.children()) or is_lazy(weights[0]):
            continue
        dtype = weights[0].dtype
        if isinstance(module, nn.Embedding):
            dtype = torch.int64
        other = isinstance(inputs, Tensor) and inputs.dtype != dtype
        remedy = f": convert the inputs to {dtype}" if other else ""
        layer = f"its first layer, {type(module).__name__} {name!r}"
        return f"{layer}, has {described(weights[0])} weights{remedy}"
    return "it has no weights"
