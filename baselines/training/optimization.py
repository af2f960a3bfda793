"""How long and by which optimiser a network is trained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
)

from baselines.optimizers.powersign import PowerSign
from metricopt.errors import ConfigError, require_choice, require_ranges
from metricopt.losses.contract import Loss
from metricopt.registry import Registry

RateSchedule = Literal["one-cycle", "steps", "cosine", "constant"]
Precision = Literal["float32", "bfloat16", "fastest"]
RMSPROP = {"alpha": 0.9, "eps": 1.0}
"""Settings of NASNet's training on ImageNet: Zoph et al., CVPR 2018, Appendix A.3."""


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Attributes:
        epochs: length of the training; an epoch draws about as many examples as exist.
        learning_rate: greatest rate.
        optimizer: one of `OPTIMIZERS`: "adam", "sgd", "rmsprop" with the settings of
            NASNet, or "powersign" with signs that count less along half a cosine.
        momentum: momentum of SGD and RMSProp.
        nesterov: whether the momentum of SGD is Nesterov's.
        weight_decay: factor of the squared weights in the loss. Parameters of a loss
            decay with Adam alone.
        schedule: course of the rate. "one-cycle": up, then down to almost nothing, and
            with Adam its first momentum the other way round; "steps": divided by 10
            after 1/2 and 3/4 of the steps; "cosine": down to 0; "constant".
        warm_up: share of the steps of "one-cycle" in which the rate rises.
        precision: arithmetic of the forward pass; "bfloat16" by autocast, its outputs
            are float32; "fastest" is bfloat16 where the device has instructions for it,
            float32 elsewhere, where it takes up to six times as long.
        channels_last: whether images are kept with their channels last in memory.
        head_factor: rate of the last layer relative to the others; for Adam alone.
        keep_best: return to the epoch of best score; otherwise keep the last one.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    epochs: int
    learning_rate: float
    optimizer: str = "adam"
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 0.0
    schedule: RateSchedule = "one-cycle"
    warm_up: float = 0.3
    precision: Precision = "float32"
    channels_last: bool = False
    head_factor: float = 1.0
    keep_best: bool = True

    def __post_init__(self) -> None:
        require_ranges(
            "training",
            vars(self),
            epochs=">= 1",
            learning_rate="> 0",
            momentum="in [0, 1)",
            weight_decay=">= 0",
            warm_up="in (0, 1)",
            head_factor="> 0",
        )
        if self.head_factor != 1 and self.optimizer != "adam":
            raise ConfigError(
                f"head_factor must be 1 without Adam, got {self.head_factor} with "
                f"{self.optimizer!r}"
            )
        OPTIMIZERS.get(self.optimizer)
        require_choice("schedule", self.schedule, RateSchedule)
        require_choice("precision", self.precision, Precision)


def arithmetic(precision: Precision, device: torch.device) -> Precision:
    """Return "float32" or "bfloat16": the arithmetic of a precision on a device."""
    if precision != "fastest":
        return precision
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        found = torch.cpu.get_capabilities()
        fast = any(found.get(name) for name in ("avx512_bf16", "amx_bf16", "sve_bf16"))
    return "bfloat16" if fast else "float32"


MakeOptimizer = Callable[
    [nn.Module, Sequence[nn.Parameter], Training, int], torch.optim.Optimizer
]
"""Makes an optimiser of a network, what its loss learns, a training and its steps."""
OPTIMIZERS: Registry[MakeOptimizer] = Registry(
    "optimizer of networks", "baselines.training"
)
"""Optimisers of networks; one of another module is here once it is imported."""


def make_optimizer(
    network: nn.Module, loss: Loss, training: Training, steps_per_epoch: int
) -> torch.optim.Optimizer:
    """Return the optimiser over the weights of a network and what its loss learns."""
    learned = list(loss.parameters()) if isinstance(loss, nn.Module) else []
    steps = steps_per_epoch * training.epochs
    return OPTIMIZERS.get(training.optimizer)(network, learned, training, steps)


@OPTIMIZERS.register("adam")
def _adam(
    network: nn.Module, learned: Sequence[nn.Parameter], training: Training, steps: int
) -> torch.optim.Optimizer:
    return torch.optim.Adam(
        _with_head(network, learned, training) or [*network.parameters(), *learned],
        lr=training.learning_rate,
        weight_decay=training.weight_decay,
        fused=True,
    )


@OPTIMIZERS.register("sgd")
def _sgd(
    network: nn.Module, learned: Sequence[nn.Parameter], training: Training, steps: int
) -> torch.optim.Optimizer:
    momentum = training.momentum
    return torch.optim.SGD(
        _decaying(network, learned, training),
        training.learning_rate,
        momentum=momentum,
        nesterov=training.nesterov and momentum > 0,
    )


@OPTIMIZERS.register("rmsprop")
def _rmsprop(
    network: nn.Module, learned: Sequence[nn.Parameter], training: Training, steps: int
) -> torch.optim.Optimizer:
    # Not above: timm takes seconds to import. Its epsilon is inside the root, as in
    # TensorFlow, which the published settings are for; torch's is outside.
    from timm.optim import RMSpropTF

    groups = _decaying(network, learned, training)
    momentum = training.momentum
    return RMSpropTF(groups, training.learning_rate, momentum=momentum, **RMSPROP)


@OPTIMIZERS.register("powersign")
def _powersign(
    network: nn.Module, learned: Sequence[nn.Parameter], training: Training, steps: int
) -> torch.optim.Optimizer:
    groups = _decaying(network, learned, training)
    return PowerSign(groups, training.learning_rate, steps)


def _decaying(
    network: nn.Module, learned: Sequence[nn.Parameter], training: Training
) -> list[dict[str, Any]]:
    """Return groups of which weights decay, and what the loss learns does not."""
    weights = list(network.parameters())
    groups: list[dict[str, Any]] = [
        {"params": weights, "weight_decay": training.weight_decay}
    ]
    if learned:
        groups.append({"params": list(learned), "weight_decay": 0.0})
    return groups


def _with_head(
    network: nn.Module, learned: Sequence[nn.Parameter], training: Training
) -> list[dict[str, Any]]:
    """Return groups whose second one, the last layer, has a rate of its own.

    Empty where all rates are the same.
    """
    if training.head_factor == 1:
        return []
    layers = [layer for layer in network.modules() if list(layer.parameters(False))]
    head = list(layers[-1].parameters(False))
    others = [
        weight for weight in network.parameters() if all(weight is not w for w in head)
    ]
    rate = training.head_factor * training.learning_rate
    return [{"params": [*others, *learned]}, {"params": head, "lr": rate}]


def make_rates(
    optimizer: torch.optim.Optimizer, training: Training, steps_per_epoch: int
) -> LRScheduler:
    """Return the scheduler of an optimiser's rate, to be stepped after every step."""
    steps = steps_per_epoch * training.epochs
    if training.schedule == "one-cycle":
        greatest = [group["lr"] for group in optimizer.param_groups]
        return OneCycleLR(
            optimizer,
            greatest,
            total_steps=steps,
            pct_start=training.warm_up,
            cycle_momentum=training.optimizer == "adam",
        )
    if training.schedule == "cosine":
        return CosineAnnealingLR(optimizer, steps)
    ends = [steps // 2, steps * 3 // 4] if training.schedule == "steps" else []
    return MultiStepLR(optimizer, ends)
