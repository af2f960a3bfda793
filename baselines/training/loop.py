"""The mini-batch loop of every method that trains a whole network.

The sources of the methods leave the details open. By default: Adam with a one-cycle
rate, and the epoch of lowest observe loss is kept. A loss, unlike the metric, costs no
query.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from baselines.training.batches import Batches
from baselines.training.checkpoint import Checkpoint
from baselines.training.optimization import (
    Training,
    arithmetic,
    make_optimizer,
    make_rates,
)
from baselines.training.prediction import predict_examples
from baselines.training.randomness import GlobalRandomness, draws_globally
from baselines.training.selection import (
    BestState,
    Epoch,
    ObserveLoss,
    Score,
    balanced_once,
)
from baselines.training.team import team
from metricopt.errors import ConfigError, MetricOptError
from metricopt.losses.contract import Loss, RowLoss
from metricopt.process.seeding import drawn_seed
from metricopt.reading.outputs import each
from metricopt.tasks.examples import Examples

OnEpoch = Callable[[Epoch], None]


class Hooks:
    """What a method does between the steps of a training; by default it shows progress.

    A hook that remembers something from one epoch to the next gives it to checkpoints
    by `state`, and takes it back by `restore`.

    Args:
        on_epoch: called after every epoch; None to be silent.
    """

    def __init__(self, on_epoch: OnEpoch | None = None) -> None:
        self.on_epoch = on_epoch

    def before_step(self, step: int, steps: int) -> None:
        """Prepare a step.

        Args:
            step: steps taken so far, over all epochs.
            steps: steps of all epochs.
        """

    def after_epoch(self, epoch: Epoch) -> None:
        """Take note of an epoch, once its state is kept."""
        if self.on_epoch is not None:
            self.on_epoch(epoch)

    def state(self) -> dict[str, Any]:
        """Return what is remembered: tensors and plain values, for `torch.save`."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""


class TrainingRun:
    """A network in training, between two epochs.

    Args:
        network: what is trained, in place; moved to the device of the mini-batches.
        loss: maps outputs and labels to a scalar. What it learns is trained, too.
        batches: where mini-batches come from.
        training: length, optimiser and rate.
        generator: source of all randomness, dropout included; on the CPU.
        observe: how an epoch is scored: examples, for the loss on them (resampled once
            to equal classes if mini-batches are balanced), or a function of the
            network, lower is better. None for no score.

    Attributes:
        losses: mean training loss of every epoch so far.
        seconds: time each of them took, without its score.
        precision: arithmetic of its forward passes, "float32" or "bfloat16".
        best: the state of the network to return to.

    Raises:
        ConfigError: if the best epoch is to be kept and there is no score.
        DataError: if the mini-batches are balanced and a split has one class only.
    """

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        batches: Batches,
        training: Training,
        *,
        generator: torch.Generator,
        observe: Examples | Score | None = None,
    ) -> None:
        if training.keep_best and observe is None:
            raise ConfigError("keep_best needs observe: examples, or a score of epochs")
        self.training, self.batches, self.generator = training, batches, generator
        self.team = team()
        self.team.check(loss)
        self.device = batches.targets.device
        self.precision = arithmetic(training.precision, self.device)
        self.network, self.loss = network.to(self.device), loss
        if training.channels_last:
            network.to(memory_format=torch.channels_last)
        if isinstance(loss, nn.Module):
            loss.to(self.device)
        self._together = self.team.together(self.network)
        steps = batches.steps_per_epoch
        self.optimizer = make_optimizer(network, loss, training, steps)
        self.rates = make_rates(self.optimizer, training, steps)
        self.losses: list[float] = []
        self.seconds: list[float] = []
        self._score = self._score_of(observe)
        self.best = BestState(network, keep_best=training.keep_best)
        self._randomness = self._seeded() if draws_globally(network) else None

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return len(self.losses)

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return self.batches.steps_per_epoch * self.training.epochs

    def run_epoch(self, hooks: Hooks | None = None) -> Epoch:
        """Train for one epoch and score it.

        After an error the network is in its kept state, and the run is over.

        Raises:
            DivergedError: if the loss or the score is not finite.
            MetricError, BudgetExceededError: if a hook or the score queries a metric
                and it fails, or there are no queries left.
        """
        number, epochs = self.epoch + 1, self.training.epochs
        try:
            with self.randomness() if self._randomness else nullcontext():
                started = time.perf_counter()
                mean = self._descend(hooks or Hooks())
                seconds = time.perf_counter() - started
                self.best.check_finite(mean, number, epochs)
                self.team.level(self.network)
                score = None if self._score is None else self._score(self.network)
                epoch = Epoch(number, epochs, mean, score, self.network)
                self.best.offer(epoch)
        except MetricOptError:
            self.best.put_back()
            raise
        self.losses.append(mean)
        self.seconds.append(seconds)
        return epoch

    def forward(self, inputs: Tensor) -> Any:
        """Return the network's outputs in the precision of the training, as float32.

        With precision "float32", they are returned unchanged, whatever their type.
        """
        if self.precision == "float32":
            return self._together(inputs)
        with torch.autocast(inputs.device.type, torch.bfloat16):
            outputs = self._together(inputs)
        return each(Tensor.float, outputs)

    def outputs(self, examples: Examples) -> Any:
        """Return the outputs of all examples; leaves the network in evaluation mode."""
        return predict_examples(self.network, examples, self.forward)

    @contextmanager
    def randomness(self) -> Iterator[None]:
        """Put torch's global generator where this run left it, inside the context.

        Its seed is drawn when the run is made, if the network has dropout, and at the
        first call of this otherwise.
        """
        if self._randomness is None:
            self._randomness = self._seeded()
        with self._randomness.in_use():
            yield

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs, for `torch.save`."""
        learned = self.loss.state_dict() if isinstance(self.loss, nn.Module) else {}
        return {
            "training": asdict(self.training),
            "network": self.network.state_dict(),
            "loss": learned,
            "optimizer": self.optimizer.state_dict(),
            "rates": self.rates.state_dict(),
            "generator": self.generator.get_state(),
            "randomness": None
            if self._randomness is None
            else self._randomness.state(),
            "best": self.best.state(),
            "losses": self.losses,
            "seconds": self.seconds,
            "processes": self.team.size,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of a run that was made in the same way.

        Raises:
            ConfigError: if it was trained by other settings, or another number of
                processes.
        """
        processes = state.get("processes", 1)  # none in an earlier form
        if processes != self.team.size:
            raise ConfigError(
                f"a training that {processes} processes began must go on with as many, "
                f"got {self.team.size}; remove its checkpoint to begin anew"
            )
        if state["training"] != asdict(self.training):
            raise ConfigError(
                f"expected the state of {asdict(self.training)}, got that of "
                f"{state['training']}"
            )
        self.network.load_state_dict(state["network"])
        if isinstance(self.loss, nn.Module):
            self.loss.load_state_dict(state["loss"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rates.load_state_dict(state["rates"])
        self.generator.set_state(state["generator"])
        if state["randomness"] is not None:
            # Made anew without a draw: the state comes from elsewhere.
            self._randomness = GlobalRandomness(0, self.device)
            self._randomness.restore(state["randomness"])
        self.best.restore(state["best"])
        self.losses, self.seconds = list(state["losses"]), list(state["seconds"])

    def _descend(self, hooks: Hooks) -> float:
        """Take the steps of one epoch and return their mean loss."""
        self.network.train()
        done, steps = self.epoch * self.batches.steps_per_epoch, self.steps
        total, count = torch.zeros((), device=self.device), 0
        for step, (inputs, targets) in enumerate(
            self.batches.epoch(self.generator), start=done
        ):
            hooks.before_step(step, steps)
            if isinstance(self.loss, RowLoss):
                self.loss.before_step(step, steps)
            value = self.loss(self.forward(inputs), targets)
            self.optimizer.zero_grad()
            value.backward()
            self.optimizer.step()
            self.rates.step()
            total = total + value.detach()
            count += 1
        return float(self.team.mean(total)) / count

    def _score_of(self, observe: Examples | Score | None) -> Score | None:
        if observe is None or callable(observe):
            return observe
        if self.batches.balanced:
            observe = balanced_once(observe, self.generator)
        return ObserveLoss(self.loss, observe)

    def _seeded(self) -> GlobalRandomness:
        return GlobalRandomness(drawn_seed(self.generator), self.device)


def train(
    run: TrainingRun,
    *,
    hooks: Hooks | None = None,
    checkpoint: Checkpoint | None = None,
) -> BestState:
    """Train to the end, from the checkpoint if there is one.

    Args:
        run: what is trained; its network ends in the kept state, in evaluation mode.
        hooks: what is done between the steps.
        checkpoint: written after every epoch; None to write nothing.

    Returns:
        The kept state: its epoch and score.

    Raises:
        DivergedError, MetricOptError: as in `TrainingRun.run_epoch`.
        DataError: if the checkpoint is of this training, and holds something else.
    """
    hooks = hooks or Hooks()
    if checkpoint is not None:
        checkpoint.resume(run, hooks)
    while run.epoch < run.training.epochs:
        epoch = run.run_epoch(hooks)
        # First, so that what it notes of the epoch is in the checkpoint.
        hooks.after_epoch(epoch)
        if checkpoint is not None and run.team.leads:
            checkpoint.write(run, hooks)
    run.best.put_back()
    return run.best
