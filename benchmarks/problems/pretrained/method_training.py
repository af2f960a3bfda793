"""Training of networks by a network method, with its course for figures."""

import copy
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from baselines.network_methods.contract import (
    NETWORK_METHODS,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.batches import Batches
from baselines.training.checkpoint import Checkpoints
from baselines.training.children import Children
from baselines.training.loop import OnEpoch
from baselines.training.optimization import Training, arithmetic
from baselines.training.prediction import predict
from baselines.training.selection import Epoch
from baselines.validation import Validation
from benchmarks.problems.pretrained.kept_training import DIVERGED
from benchmarks.problems.pretrained.weights import kept
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.codec import changed
from benchmarks.runs.notes import SURFACE_EPOCHS, SURFACES
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import ConfigError, DivergedError
from metricopt.tasks.examples import Examples

DIGITS = 5
COURSE = "course"
"""Beginning of the names of notes with one number an epoch."""
OBSERVE_LOSS = "observe_loss"
"""Name of the line of the usual loss."""
LEARNED = "learned"
"""Name of the fact that holds what a method learned beside the network."""


@dataclass(frozen=True)
class TrainedByMethod:
    """A network method that trains theta towards a metric.

    Attributes:
        label: name of the method in names of networks.
        method: the network method with its settings.
        metric: metric that it queries.
    """

    label: str
    method: Unit
    metric: Unit


class Ledger:
    """What is noted of a training beside its weights: its course, and its time.

    Attributes:
        course: numbers after every epoch, by name of the line.
        surfaces: what is drawn after some epochs, by their number.
        spent: seconds by the wall and by all cores, until the clock was last stopped.
            The latter do not depend on what else a machine does.
    """

    def __init__(self) -> None:
        self.course: dict[str, list[float]] = defaultdict(list)
        self.surfaces: dict[int, list[float]] = {}
        self.spent = (0.0, 0.0)
        self._since: tuple[float, float] | None = None

    def start(self) -> None:
        """Let the clock run."""
        self._since = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        """Stop the clock."""
        self.spent, self._since = self._total(), None

    def state(self) -> dict[str, Any]:
        """Return all of it, for checkpoints; the clock runs on."""
        kept = {"course": dict(self.course), "surfaces": self.surfaces}
        return kept | {"spent": self._total()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned, with the clock running."""
        self.course.clear()
        self.course.update(state["course"])
        self.surfaces = state["surfaces"]
        self.spent = state["spent"]
        self.start()

    def _total(self) -> tuple[float, float]:
        wall, cores = self._since or (time.perf_counter(), time.process_time())
        before = self.spent
        return (
            before[0] + time.perf_counter() - wall,
            before[1] + time.process_time() - cores,
        )


@dataclass
class MethodTraining:
    """Trains a network by a network method, and notes its course for figures.

    Attributes:
        spec: what determines the network, a `ThetaSpec` with a method.
        batches: training examples.
        observe: examples on which the metric is queried.
        on_epoch: called after every epoch; None to be silent.
        ledger: numbers after every epoch, and the time that the training took.
    """

    spec: Any
    batches: Batches
    observe: Examples
    on_epoch: OnEpoch | None = None
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def by(self) -> TrainedByMethod:
        """The network method and the metric it works towards."""
        taught: TrainedByMethod = self.spec.taught
        return taught

    def watched(self, network: nn.Module) -> dict[str, float]:
        """Return what is noted of a network after every epoch, for figures alone."""
        return self.judged(network)

    def surface(self, network: nn.Module, number: int) -> list[float]:
        """Return the loss on a grid around the weights, flat; empty for none.

        Args:
            network: as it is after an epoch.
            number: epochs that are over.
        """
        return []

    def noted(self, network: nn.Module) -> dict[str, float]:
        """Return what else is noted of the trained network."""
        return {}

    def train(
        self,
        network: nn.Module,
        training: Training,
        generator: torch.Generator,
        checkpoints: Callable[..., Checkpoints],
    ) -> Artifact:
        """Return a trained network and what it took; see `ThetaSpec.train`.

        Args:
            network: where to start.
            training: length, optimiser and rate.
            generator: source of all randomness.
            checkpoints: returns where states are kept, with further things to keep.

        Raises:
            ConfigError: if the method moves the threshold, which weights do not keep.
        """
        validation = Validation(metric_of(self.by.metric), self.observe)
        # The first calls of a process take seconds that belong to no method.
        network.to(self.batches.targets.device)
        predict(copy.deepcopy(network), self.batches.plain(2))
        self.ledger.start()
        try:
            result = self._method().train(
                network,
                self.batches,
                validation,
                training=training,
                generator=generator,
                checkpoints=checkpoints(validation.meter, self.ledger),
            )
        except DivergedError as error:
            return Artifact({}, {DIVERGED: str(error)})
        self.ledger.stop()
        if result.threshold:
            name = self.by.method.name
            raise ConfigError(f"{name} moves the threshold of its network")
        device = self.batches.targets.device
        facts = self._facts(result, validation, training.epochs)
        facts["precision"] = arithmetic(training.precision, device)
        return kept(result.network, self.spec.loss(), self.judged, facts)

    def judged(self, network: nn.Module) -> dict[str, float]:
        """Return facts of how good the trained network is on observe."""
        facts: dict[str, float] = self.spec.judge(network, self.observe)
        return facts

    def _method(self) -> NetworkMethod:
        """Return the method with its settings, and the policy of its teacher."""
        unit, teacher = self.by.method, self.spec.teacher
        settings = dict(unit.settings)
        if teacher is not None:
            settings["policy"] = teacher.kept().facts[LEARNED]
        known = NETWORK_METHODS.get(unit.name)(on_epoch=self._look)
        method: NetworkMethod = changed(known, settings)
        return method

    def _facts(
        self, result: NetworkResult, validation: Validation, epochs: int
    ) -> dict[str, object]:
        """Return what is known of a training that is over."""
        # Of a method that trains several times, the last training is shown.
        # A line that an earlier version had not begun to note is not whole.
        course: dict[str, list[float]] = {
            f"{COURSE}_{name}": line[-epochs:]
            for name, line in self.ledger.course.items()
            if len(line) >= epochs
        }
        if self.ledger.surfaces:
            course[SURFACE_EPOCHS] = [float(e) for e in self.ledger.surfaces]
            course[SURFACES] = [z for own in self.ledger.surfaces.values() for z in own]
        seconds, core_seconds = self.ledger.spent
        facts: dict[str, object] = {
            "queries": dict(validation.meter.made),
            "gradient_steps": result.gradient_steps,
            "seconds": round(seconds, 1),
            "core_seconds": round(core_seconds, 1),
            "notes": result.notes | course | self.noted(result.network),
        }
        if result.learned:
            facts[LEARNED] = list(result.learned)
        return facts

    def _look(self, epoch: Epoch) -> None:
        """Take note of an epoch whose network is shown."""
        if self.on_epoch is not None:
            self.on_epoch(epoch)
        network = epoch.network
        if network is None:
            return
        self.ledger.stop()
        if isinstance(network, Children):
            network = network.network(0)
        for name, value in self.watched(network).items():
            self.ledger.course[name].append(round(float(value), DIGITS))
        if surface := self.surface(network, epoch.number):
            self.ledger.surfaces[epoch.number] = [round(z, DIGITS) for z in surface]
        self.ledger.start()
