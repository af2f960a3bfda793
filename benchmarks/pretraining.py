"""Pre-training of image networks: SGD in bfloat16, resumable between epochs.

Source: He et al., CVPR 2016, Sec. 4.2: SGD with momentum 0.9 from rate 0.1, divided by
10 after 1/2 and 3/4 of 64,000 steps of 128 images. Differs where a recipe says so: a
one-cycle schedule (Smith and Topin, 2019) needs a quarter of the epochs.
"""

import hashlib
import io
import pickle
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from baselines.losses.base import Loss
from benchmarks.image_batches import ImageBatches
from benchmarks.image_data import Images
from benchmarks.paths import write_atomically
from metricopt.errors import ConfigError, DivergedError

PREDICTED_AT_ONCE = 500
WARM_UP = 0.25
"""Share of a one-cycle schedule in which the rate rises."""


@dataclass(frozen=True)
class Pretraining:
    """How an image network is trained.

    Attributes:
        epochs: passes over the training images.
        batch_size: images of one mini-batch; an incomplete last one is dropped.
        rate: greatest learning rate.
        schedule: "one-cycle", or "steps": divided by 10 after 1/2 and 3/4.
        momentum: of SGD.
        nesterov: whether the momentum is Nesterov's.
        weight_decay: factor of the squared weights; not applied to what a loss learns.
    """

    epochs: int
    batch_size: int = 128
    rate: float = 0.2
    schedule: Literal["one-cycle", "steps"] = "one-cycle"
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 2 or self.rate <= 0:
            raise ConfigError(
                "pre-training needs epochs >= 1, batch_size >= 2 and rate > 0, got "
                f"{self.epochs}, {self.batch_size} and {self.rate}"
            )
        if self.schedule not in ("one-cycle", "steps"):
            raise ConfigError(
                f"schedule must be 'one-cycle' or 'steps', got {self.schedule!r}"
            )


@dataclass(frozen=True)
class EpochReport:
    """What is known after an epoch.

    Attributes:
        epoch: epochs done.
        epochs: epochs in all.
        loss: mean training loss of the epoch.
    """

    epoch: int
    epochs: int
    loss: float


class PretrainingRun:
    """A network, its loss and optimizer between two epochs.

    Args:
        network: what is trained, in place; moved to the device of the images.
        loss: outputs and labels to a scalar; a module's parameters are trained too.
        recipe: length, rate and schedule.
        images: training images with their labels.
        generator: source of order and augmentation; on the CPU.
        anneal: called before every step with its number and the steps in all.
    """

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        recipe: Pretraining,
        *,
        images: Images,
        generator: torch.Generator,
        anneal: Callable[[int, int], None] | None = None,
    ) -> None:
        self.recipe, self.generator = recipe, generator
        self.images, self.targets = images.batches, images.targets
        self.device = self.targets.device
        self.loss, self.anneal = loss, anneal
        self.network = network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.steps_per_epoch = len(self.targets) // recipe.batch_size
        if self.steps_per_epoch < 1:
            raise ConfigError(
                f"a mini-batch of {recipe.batch_size} needs as many training images, "
                f"got {len(self.targets)}"
            )
        self.optimizer = torch.optim.SGD(
            self._parameter_groups(),
            lr=recipe.rate,
            momentum=recipe.momentum,
            nesterov=recipe.nesterov,
        )
        self.rates = self._rates()
        self.losses: list[float] = []
        self.seconds: list[float] = []

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return len(self.losses)

    def run_epoch(self) -> EpochReport:
        """Train for one epoch.

        Raises:
            DivergedError: if the loss is not finite.
        """
        started = time.perf_counter()
        self.network.train()
        order = torch.randperm(len(self.targets), generator=self.generator)
        size, total = self.recipe.batch_size, torch.zeros((), device=self.device)
        steps = self.steps_per_epoch
        for step, index in enumerate(order[: steps * size].split(size)):
            if self.anneal is not None:
                self.anneal(self.epoch * steps + step, steps * self.recipe.epochs)
            inputs = self.images.augmented(index, self.generator)
            outputs = forward_in_bfloat16(self.network, inputs)
            loss = self.loss(outputs, self.targets[index.to(self.device)])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.rates.step()
            total += loss.detach()
        mean = float(total) / steps
        if not torch.isfinite(total):
            raise DivergedError(
                f"the training loss became {mean} in epoch {self.epoch + 1} of "
                f"{self.recipe.epochs}"
            )
        self.losses.append(mean)
        self.seconds.append(time.perf_counter() - started)
        return EpochReport(self.epoch, self.recipe.epochs, mean)

    def state(self) -> dict[str, Any]:
        """Return all that is needed to go on elsewhere."""
        learned = self.loss.state_dict() if isinstance(self.loss, nn.Module) else {}
        return {
            "recipe": asdict(self.recipe),
            "network": self.network.state_dict(),
            "loss": learned,
            "optimizer": self.optimizer.state_dict(),
            "rates": self.rates.state_dict(),
            "generator": self.generator.get_state(),
            "losses": self.losses,
            "seconds": self.seconds,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned.

        Raises:
            ConfigError: if it is of another recipe.
        """
        if state["recipe"] != asdict(self.recipe):
            raise ConfigError(
                f"expected the state of {asdict(self.recipe)}, got that of "
                f"{state['recipe']}"
            )
        self.network.load_state_dict(state["network"])
        if isinstance(self.loss, nn.Module):
            self.loss.load_state_dict(state["loss"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rates.load_state_dict(state["rates"])
        self.generator.set_state(state["generator"])
        self.losses, self.seconds = list(state["losses"]), list(state["seconds"])

    def _parameter_groups(self) -> list[dict[str, Any]]:
        weights = list(self.network.parameters())
        groups = [{"params": weights, "weight_decay": self.recipe.weight_decay}]
        if isinstance(self.loss, nn.Module):
            self.loss.to(self.device)
            learned = list(self.loss.parameters())
            groups += [{"params": learned, "weight_decay": 0.0}] if learned else []
        return groups

    def _rates(self) -> torch.optim.lr_scheduler.LRScheduler:
        total = self.steps_per_epoch * self.recipe.epochs
        if self.recipe.schedule == "one-cycle":
            return torch.optim.lr_scheduler.OneCycleLR(
                self.optimizer,
                self.recipe.rate,
                total_steps=total,
                pct_start=WARM_UP,
                cycle_momentum=False,
            )
        return torch.optim.lr_scheduler.MultiStepLR(
            self.optimizer, [total // 2, total * 3 // 4]
        )


def pretrain(
    run: PretrainingRun,
    checkpoint: Path,
    *,
    key: str,
    on_epoch: Callable[[EpochReport], None] | None = None,
) -> None:
    """Train to the end, from the checkpoint if there is one.

    Args:
        run: what is trained.
        checkpoint: written after every epoch.
        key: identity of the run; a checkpoint of another one is not gone on from.
        on_epoch: called after every epoch.
    """
    found = _load(checkpoint, key)
    if found is not None:
        run.restore(found)
    while run.epoch < run.recipe.epochs:
        report = run.run_epoch()
        buffer = io.BytesIO()
        torch.save({"key": key, **run.state()}, buffer)
        write_atomically(checkpoint, buffer.getvalue())
        if on_epoch is not None:
            on_epoch(report)
    run.network.eval()


def forward_in_bfloat16(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return the outputs in float32, convolutions and products taken in bfloat16."""
    with torch.autocast(inputs.device.type, torch.bfloat16):
        outputs: Tensor = network(inputs)
    return outputs.float()


@torch.no_grad()
def predict_images(network: nn.Module, images: ImageBatches) -> Tensor:
    """Return the float32 outputs of all images, without augmentation, [N, C]."""
    network.eval()
    starts = range(0, len(images), PREDICTED_AT_ONCE)
    parts = (images.plain(slice(at, at + PREDICTED_AT_ONCE)) for at in starts)
    return torch.cat([network(part) for part in parts])


def half_weights(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a state whose matrices and kernels are float16, to be small on disk.

    The rounded weights are theta: whatever is fine-tuned starts from them.
    """
    return {
        name: tensor.half().contiguous()
        if tensor.ndim > 1
        else tensor.contiguous().clone()
        for name, tensor in state.items()
    }


def state_digest(state: dict[str, Tensor]) -> str:
    """Return the sha256 of names, types and bytes of a state, in hexadecimal."""
    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _load(path: Path, key: str) -> dict[str, Any] | None:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError):
        return None
    return found if isinstance(found, dict) and found.get("key") == key else None
