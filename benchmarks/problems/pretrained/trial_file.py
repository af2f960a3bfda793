"""Short trainings by which settings are chosen, and the files of what each reached."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.problems.pretrained.kept_training import KeptTraining
from benchmarks.problems.pretrained.weights import RELEASED
from metricopt.errors import DivergedError
from metricopt.files import read_text, write_atomically


class Trial(Protocol):
    """A short training."""

    @property
    def network(self) -> KeptTraining:
        """What trains."""

    @property
    def line(self) -> str:
        """What is kept of it, as JSON: at least its digest, as `spec`."""


@dataclass(frozen=True)
class TrialFile:
    """What the trials of an experiment have reached, a line each.

    Attributes:
        experiment: name of the experiment.
    """

    experiment: str

    @property
    def path(self) -> Path:
        """Beside the released networks."""
        return RELEASED / f"{self.experiment}-trials.jsonl"

    def read(self) -> list[dict[str, Any]]:
        """Return what trials have reached, in the order in which they ended."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in read_text(self.path).splitlines()]

    def keep(self, trial: Trial) -> None:
        """Add a trial that is over to those on file."""
        before = read_text(self.path) if self.path.exists() else ""
        write_atomically(self.path, f"{before}{trial.line}\n".encode())


def reached(
    network: KeptTraining,
    settings: Mapping[str, Any],
    kept: Sequence[str],
    worst: Mapping[str, float],
) -> str:
    """Train a trial if it is not yet, and return its line.

    Args:
        network: what trains.
        settings: what is tried, by name.
        kept: what is kept of the facts of the training.
        worst: what stands for these facts if it diverges, with the message.
    """
    try:
        facts = network.trained_here().facts
    except DivergedError as error:
        facts = {**worst, "diverged": str(error)}
    said = {name: facts[name] for name in (*kept, "diverged") if name in facts}
    return json.dumps({"spec": network.digest, **settings, **said}, sort_keys=True)
