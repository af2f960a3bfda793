"""A meta-trained optimizer: found in the cache, among the released, or trained."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.problems.optimizers.learning import OptimizerLearning
from benchmarks.problems.optimizers.training import Place, meta_trained
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.problems.pretrained.base_weights import restore
from benchmarks.problems.pretrained.kept_training import DIVERGED, KeptTraining
from benchmarks.problems.pretrained.weights import weights_digest
from benchmarks.runs.artifacts import Artifact
from benchmarks.runs.codec import encode
from benchmarks.runs.environment import device_name, environment
from benchmarks.runs.spec import Unit
from metricopt.errors import DivergedError
from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.methods.known import KnownOptimizer
from metricopt.process.keeping import one_thread
from metricopt.process.seeding import Seeds

QUERIES, SECONDS = "queries", "seconds"
"""Facts: metric queries and wall seconds of the meta-training."""


@dataclass(frozen=True)
class OptimizerSpec(KeptTraining):
    """Everything that determines a meta-trained optimizer of phi.

    Attributes:
        problem: the pipeline whose fine-tunings it is trained on.
        metric: what its runs are judged by; of no account where the loss alone does.
        learning: how it is trained.
        replicate: of the pipeline.
        number: number of the meta-training on that pipeline; others have other noise.
    """

    problem: Unit
    metric: Unit
    learning: OptimizerLearning
    replicate: int
    number: int = 0
    kind: ClassVar[str] = "optimizer"

    @property
    def content(self) -> dict[str, Any]:
        """All that counts, JSON-able: fields, and the settings that they leave open."""
        found = super().content
        found["form"] = encode(self.learning.fresh(0).settings())
        found["training"] = encode(replace(self.learning.settings, save_every=0.0))
        return found if self.learning.asks_metric else found | {"metric": None}

    @property
    def name(self) -> str:
        """Readable, and unique among what is released."""
        place = self._pipeline.seeds.names[0]
        judged = f"-{self.metric.name}" if self.learning.asks_metric else ""
        numbers = f"r{self.replicate}-{self.number}"
        known = self.digest[:8]
        return f"optimizer-{place}-{self.learning.label}{judged}-{numbers}-{known}"

    @property
    def tasks(self) -> str:
        """What it was trained on, in words."""
        judged = f" and {self.metric.label}" if self.learning.asks_metric else ""
        return (
            f"fine-tunings of {self.learning.steps} steps of the pipeline "
            f"{self.problem.name}, replicate {self.replicate}, judged by the loss"
            f"{judged}"
        )

    @property
    def warm(self) -> Sequence[Prerequisite]:
        """The network that is fine-tuned, if it is pre-trained before any run."""
        return self._pipeline.prerequisites[-1:]

    def check(self) -> None:
        """Check that the settings go together, without data.

        Raises:
            ConfigError: if they do not.
        """
        self.learning.fresh(0)

    def find(self) -> KnownOptimizer:
        """Return the optimizer, trained now if there is none.

        Raises:
            DataError: if released weights do not match their record, or the form.
            DivergedError: if it diverged.
        """
        optimizer: LearnedOptimizer = self.learning.fresh(0)
        restore(optimizer, self.kept().tensors, self.name)
        return KnownOptimizer(optimizer.eval(), self.tasks)

    @property
    def _pipeline(self) -> NetworkPipeline:
        found = make_pipeline(self.problem, self.replicate)
        assert isinstance(found, NetworkPipeline)
        return found

    def train(self, report: Any = None) -> Artifact:
        """Train the optimizer, from its checkpoint on if its runs query nothing."""
        pipeline = self._pipeline
        seeds = Seeds(*pipeline.seeds.names, self.learning.label, self.number)
        began = time.perf_counter()
        with pipeline.sealed(), one_thread():
            task = pipeline.task(pipeline.metric(self.metric))
            task.meter.limit = self.learning.queries
            state = self.checkpoints / "meta-training.pt"
            place = Place(task, seeds, state, shown=bool(report))
            try:
                optimizer, happened = meta_trained(self.learning, place)
            except DivergedError as error:
                return Artifact({}, {DIVERGED: str(error)})
        tensors = {
            name: value.detach().cpu().clone().contiguous()
            for name, value in optimizer.state_dict().items()
        }
        # A training that went on has more seconds than this call of it.
        spent = max(time.perf_counter() - began, happened.get(SECONDS, 0.0))
        machine = environment() | {"device": device_name(pipeline.device)}
        facts: dict[str, object] = {
            **happened,
            QUERIES: task.queries,
            SECONDS: round(spent, 1),
            "inputs": list(optimizer.inputs),
            "horizon": optimizer.horizon,
            "tasks": self.tasks,
            "environment": machine,
            "weights": weights_digest(tensors),
        }
        return Artifact(tensors, facts)

    def make(self, *, quiet: bool = False) -> None:
        """Train it, with a bar of its iterations unless it is to be quiet."""
        self.trained_here(None if quiet else print)

    def release(self) -> dict[str, str]:
        """Write it to the released weights, and return what a table says of it."""
        facts, path = self.trained_here().facts, self.write()
        return {
            "optimizer": self.name,
            "iterations": f"{facts['iterations']:.0f}",
            "queries": str(facts[QUERIES]),
            "minutes": f"{float(str(facts[SECONDS])) / 60:.1f}",
            "kB": f"{path.stat().st_size / 1e3:.1f}",
        }
