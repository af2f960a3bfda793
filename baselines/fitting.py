"""The mini-batch loop every method that trains a whole network shares.

Implementation details (the sources leave them open): Adam with a one-cycle rate,
mini-batches drawn with replacement, and the epoch of lowest observe loss kept. A loss,
unlike the metric, costs no query.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from baselines.losses import Loss
from metricopt.errors import ConfigError, DivergedError
from metricopt.sampling import BalancedSampler, NaturalSampler, Sampler, Split

CHUNK = 8192
"""Examples in one forward pass of `predict`, which bounds its memory."""


@dataclass(frozen=True)
class Schedule:
    """How long and on which mini-batches a network is trained.

    Attributes:
        epochs: passes over as many examples as the train split has.
        batch_size: examples n of one mini-batch, at least 2.
        learning_rate: greatest rate of Adam.
        balanced: whether every class is equally frequent in a mini-batch.
        weight_decay: factor of the squared weights in the loss.
        keep_best: return to the best epoch on the observe split; otherwise keep the
            last one.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    balanced: bool
    weight_decay: float = 0.0
    keep_best: bool = True

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 2 or self.learning_rate <= 0:
            raise ConfigError(
                "a schedule needs epochs >= 1, batch_size >= 2 and learning_rate > 0, "
                f"got epochs={self.epochs}, batch_size={self.batch_size}, "
                f"learning_rate={self.learning_rate}"
            )

    def steps_per_epoch(self, n_examples: int) -> int:
        """Return the mini-batches of one epoch, at least 1."""
        return max(1, n_examples // self.batch_size)

    def sampler(self, split: Split) -> Sampler:
        """Return the sampler of mini-batches of a split; its indices are on the CPU.

        Raises:
            DataError: if the mini-batches are balanced and there is one class only.
        """
        if self.balanced:
            return BalancedSampler(split.targets.cpu(), self.batch_size)
        return NaturalSampler(len(split), self.batch_size)


@dataclass(frozen=True)
class Epoch:
    """What a caller may print after an epoch.

    Attributes:
        number: epochs done so far, from 1.
        train_loss: mean mini-batch loss over the epoch.
        observe_score: what the best epoch is chosen by, lower is better: the loss on
            the observe split, or the metric's cost where the method says so.
    """

    number: int
    train_loss: float
    observe_score: float


OnEpoch = Callable[[Epoch], None]


@dataclass(frozen=True)
class Recipe:
    """How `fit` trains.

    Attributes:
        loss: what the gradients are of.
        schedule: length, mini-batches and rate.
        on_epoch: called after every epoch; None to be silent.
    """

    loss: Loss
    schedule: Schedule
    on_epoch: OnEpoch | None = None


class BestState:
    """The best state of a network so far, to return to.

    Args:
        network: the network to watch.
        keep_best: keep the state of lowest score; otherwise the latest.

    Attributes:
        epoch: epoch of the kept state; 0 is the one the network came with.
        score: its score; infinite before the first epoch.
    """

    def __init__(self, network: nn.Module, keep_best: bool) -> None:
        self.network = network
        self.keep_best = keep_best
        self.epoch = 0
        self.score = math.inf
        self._state = copy.deepcopy(network.state_dict())

    def offer(self, epoch: Epoch) -> None:
        """Keep the network's state if it is to be kept.

        Raises:
            DivergedError: if a figure of the epoch is not finite; the network is
                back in the kept state.
        """
        for figure in (epoch.train_loss, epoch.observe_score):
            if not math.isfinite(figure):
                self.restore()
                raise DivergedError(
                    f"the loss became {figure} in epoch {epoch.number}; the network "
                    f"is back in its state after epoch {self.epoch}"
                )
        if not self.keep_best or epoch.observe_score < self.score:
            self.epoch, self.score = epoch.number, epoch.observe_score
            self._state = copy.deepcopy(self.network.state_dict())

    def restore(self) -> None:
        """Return the network to the kept state, in evaluation mode."""
        self.network.load_state_dict(self._state)
        self.network.eval()


def fit(
    network: nn.Module,
    train: Split,
    observe: Split,
    *,
    recipe: Recipe,
    generator: torch.Generator,
) -> BestState:
    """Train the network in place by mini-batch gradients of a loss.

    The observe loss is taken on the observe split, resampled once to equal classes
    where the mini-batches are balanced, as one set.

    Args:
        network: what to train; ends in evaluation mode.
        train: examples for gradients.
        observe: examples for the choice of the epoch.
        recipe: loss, schedule and progress.
        generator: source of all randomness, dropout included; on the CPU.

    Returns:
        The kept state: its epoch and observe loss.

    Raises:
        DataError: if the mini-batches are balanced and a split has one class only.
        DivergedError: if a loss is not finite; the network is in its last good state.
    """
    schedule = recipe.schedule
    sampler = schedule.sampler(train)
    steps = schedule.steps_per_epoch(len(train))
    optimizer = make_adam(network, schedule, recipe.loss)
    rates = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, schedule.learning_rate, total_steps=steps * schedule.epochs
    )
    judged = _as_sampled(observe, schedule, generator)
    best = BestState(network, schedule.keep_best)
    with seeded_globally(generator, train.inputs.device):
        for number in range(1, schedule.epochs + 1):
            batches = draw_batches(train, sampler, steps, generator)
            train_loss = _run_epoch(network, batches, recipe.loss, optimizer, rates)
            outputs = predict(network, judged.inputs)
            with torch.no_grad():
                observe_loss = recipe.loss(outputs, judged.targets)
            epoch = Epoch(number, train_loss, float(observe_loss))
            best.offer(epoch)
            if recipe.on_epoch is not None:
                recipe.on_epoch(epoch)
    best.restore()
    return best


def make_adam(
    network: nn.Module, schedule: Schedule, loss: Loss | None = None
) -> torch.optim.Adam:
    """Return Adam over the weights of the network and of its loss, in fused form."""
    learned = list(loss.parameters()) if isinstance(loss, nn.Module) else []
    return torch.optim.Adam(
        [*network.parameters(), *learned],
        lr=schedule.learning_rate,
        weight_decay=schedule.weight_decay,
        fused=True,
    )


def draw_batches(
    split: Split, sampler: Sampler, rows: int, generator: torch.Generator
) -> Iterator[Split]:
    """Yield `rows` mini-batches; their indices are drawn at once."""
    for index in sampler.draw(rows, generator).to(split.targets.device):
        yield Split(split.inputs[index], split.targets[index])


def predict(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return the outputs [N, C] in evaluation mode, without gradients."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(part) for part in inputs.split(CHUNK)])


@contextmanager
def seeded_globally(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Seed torch's global generator from this one, and put it back afterwards.

    Dropout and weight initialisation know no other source of randomness.
    """
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _as_sampled(
    observe: Split, schedule: Schedule, generator: torch.Generator
) -> Split:
    if not schedule.balanced:
        return observe
    sampler = BalancedSampler(observe.targets.cpu(), len(observe))
    return next(draw_batches(observe, sampler, 1, generator))


def _run_epoch(
    network: nn.Module,
    batches: Iterator[Split],
    loss: Loss,
    optimizer: torch.optim.Adam,
    rates: torch.optim.lr_scheduler.LRScheduler,
) -> float:
    network.train()
    losses = []
    for batch in batches:
        value = loss(network(batch.inputs), batch.targets)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        rates.step()
        losses.append(value.detach())
    return float(torch.stack(losses).mean())
