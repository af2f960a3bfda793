"""A training done once: found in the cache, among the released, or made.

It is identified by all that determines it. What was trained on this machine, or is
being trained, takes precedence over what is released.
"""

import hashlib
import shutil
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.problems.pretrained.weights import read_released, release
from benchmarks.runs.artifacts import Artifact, find, get_or_make
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.paths import cache_root
from metricopt.errors import DivergedError

DIVERGED = "diverged"
"""Name of the fact that a training diverged and gave no weights; it holds the reason.
"""
Report = Callable[[Any], None]
"""Called with each step of a training that is shown."""


class KeptTraining(Prerequisite):
    """A training whose result is kept; a subclass is a dataclass of what decides it.

    Attributes:
        kind: name of the folder of artifacts that results are kept in.
    """

    kind: ClassVar[str]

    @property
    def content(self) -> dict[str, Any]:
        """All fields, JSON-able."""
        found: dict[str, Any] = encode(self)
        return found

    @property
    def digest(self) -> str:
        """Identity: sha256 of its canonical JSON."""
        return hashlib.sha256(canonical(self.content).encode()).hexdigest()

    @property
    def checkpoints(self) -> Path:
        """Folder where a training that is under way keeps its states."""
        return cache_root() / "pretraining" / f"{self.name}-{self.digest[:16]}"

    @property
    def is_made(self) -> bool:
        """Whether it was trained on this machine, and is undamaged."""
        return find(self.kind, self.content) is not None

    @property
    def is_ready(self) -> bool:
        """Whether `kept` would not have to train it."""
        return self.is_made or self._released() is not None

    def kept(self) -> Artifact:
        """Return what is kept of the training, trained now if there is nothing.

        Raises:
            DataError: if released weights do not match their record.
            DivergedError: if it diverged.
        """
        return (None if self.is_made else self._released()) or self.trained_here()

    def _released(self) -> Artifact | None:
        # A training under way goes on.
        here = self.checkpoints.exists()
        return None if here else read_released(self.name, self.digest)

    def trained_here(self, report: Report | None = None) -> Artifact:
        """Return what is kept of the training, done on this machine.

        Raises:
            DivergedError: if its loss became non-finite, now or before.
        """
        artifact = get_or_make(self.kind, self.content, lambda: self.train(report))
        # Only now: if it were removed before the artifact is stored, a kill would lose
        # all.
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        if DIVERGED in artifact.facts:
            raise DivergedError(str(artifact.facts[DIVERGED]))
        return artifact

    @abstractmethod
    def train(self, report: Report | None = None) -> Artifact:
        """Train, continuing from a checkpoint if there is one.

        Returns:
            Weights and facts, `weights` and `seconds` among them. For a training that
            diverged the fact `DIVERGED` only, so that no run trains it again.
        """

    def write(self) -> Path:
        """Write what was trained here to the released weights.

        Raises:
            ConfigError: if another training is released by that name.
        """
        return release(self.name, self.digest, self.content, self.trained_here())
