"""How long tables of tier paper take on many GPUs: `python -m benchmarks.cli.scale`.

Prints the table of docs/scale.md, from the committed records of tier local and the plan
of both tiers. What is not measured there is a constant here.
"""

import sys
from collections.abc import Sequence
from statistics import fmean

from benchmarks.cli.verbs.experiments import committed_records
from benchmarks.cli.verbs.plan import GPU
from benchmarks.execution.networks import networks_of, pipelines_of
from benchmarks.execution.planned import Prediction, measured, predicted, tasks_of
from benchmarks.problems.contract import Pipeline, make_pipeline
from benchmarks.problems.prerequisite import PASSES
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.spec import RunSpec
from benchmarks.tables.registry import find_experiment

EXPERIMENTS = (
    *("table1", "table2", "table3", "table4", "table5", "table6"),
    *("fig3", "figs4", "mismatch", "ala-table1", "ala-table2", "reloss-cifar"),
)
GPUS = (8, 64, 512)
CORES = 16
"""Cores of a machine for each of its GPUs: those of the machine with the H100."""
CORE = 286e9 / 2
"""Operations of a core in a second: ResNet-20 on images of CIFAR-10, trained on two."""
SMALL = 2.0e12
"""The same of an H100 with one process: mean of the networks that a method weighs."""
SMALL_COST = 1e9
"""Operations of an image, less than which a network leaves a GPU idle most of the time.
"""
BATCH = 128
"""Images of a mini-batch where the settings say no other number."""
JUDGED = 2
"""Evaluations of a result, on observe and on test."""
HEADING = ("table", "runs", "in all", "networks", "their training")


class Scale:
    """Predicts runs of tier paper from those that were measured at tier local.

    Args:
        experiment: name of the table.
    """

    def __init__(self, experiment: str) -> None:
        self._pipelines: dict[str, Pipeline] = {}
        self.specs = find_experiment(experiment).specs("paper", None, None)
        self.records = committed_records(experiment, "local")
        self.on_gpu = any(
            self._pipeline(spec).forecast() is not None for spec in self.specs
        )
        self.trainings = self._trainings()

    def line(self, name: str) -> tuple[str, ...]:
        """Return the cells of the table's line."""
        seconds = self.seconds()
        tasks = tasks_of(self.specs, seconds, self.trainings)
        found = [predicted(tasks, self.workers(gpus)) for gpus in GPUS]
        return (
            name,
            str(len(self.specs)),
            f"{sum(seconds.values()) / 3600:,.1f} {'GPU' if self.on_gpu else 'core'} h",
            str(len(self.trainings)),
            f"{sum(self.trainings.values()) / 3600:,.1f} GPU h",
            *(f"{each.wall / 3600:,.2g} h{self._why(each)}" for each in found),
        )

    def workers(self, gpus: int) -> int:
        """Return how many runs go at once: one on a GPU, or one on each core."""
        return gpus if self.on_gpu else gpus * CORES

    def seconds(self) -> dict[str, float]:
        """Return the seconds of every run where it is made, by digest.

        On a core: measured seconds of its row, by steps and queries. On a GPU: as much
        faster as small networks are trained there, or its operations at the speed of
        large networks, whichever takes longer. A row without records is like the mean.
        """
        rates: dict[str, list[float]] = {}
        for record in measured(self.records):
            rate = record.total_seconds / _effort(record.spec)
            rates.setdefault(record.spec.row, []).append(rate)
        every = [rate for found in rates.values() for rate in found]
        usual = fmean(every) if every else 0.0
        found = {}
        for spec in self.specs:
            seconds = _effort(spec) * fmean(rates.get(spec.row, [usual]))
            if self.on_gpu:
                seconds = max(seconds * CORE / SMALL, self._operations(spec) / GPU)
            found[spec.digest] = seconds
        return found

    def _operations(self, spec: RunSpec) -> float:
        """Return the operations of a run on images, about.

        Mini-batches go forth and back; queries and judging look at a third of the
        images, as one split has.
        """
        pipeline = self._pipeline(spec)
        if pipeline.forecast() is None:
            return 0.0
        cost, kept = pipeline.image_cost.adapted, pipeline.counted[1]  # type: ignore[attr-defined]
        batch = getattr(pipeline.settings, "batch_size", BATCH)
        steps = PASSES * spec.budget.gradient_steps * batch * _results(spec)
        looks = (spec.budget.queries + JUDGED * _results(spec)) * kept / 3
        return float(cost * (steps + looks))

    def _trainings(self) -> dict[str, float]:
        """Return the seconds in which a GPU trains each network."""
        missing = {n.digest for n in networks_of(self.specs) if not n.is_ready}
        found = dict.fromkeys(missing, 0.0)
        for pipeline in pipelines_of(self.specs):
            forecast = pipeline.forecast()
            if forecast is not None and forecast.network in missing:
                cost = pipeline.image_cost.operations  # type: ignore[attr-defined]
                rate = SMALL if cost < SMALL_COST else GPU
                found[forecast.network] = forecast.operations / rate
        return found

    def _pipeline(self, spec: RunSpec) -> Pipeline:
        key = canonical(encode(spec.pipeline))
        if key not in self._pipelines:
            # Replicates cost the same.
            self._pipelines[key] = make_pipeline(spec.pipeline, 0)
        return self._pipelines[key]

    def _why(self, found: Prediction) -> str:
        """Return what more GPUs would not change; empty if they would help."""
        if not found.bottleneck:
            return ""
        longest = max(self.trainings.values(), default=0.0)
        trained = longest >= found.path / 2
        return " (training)" if trained else f" ({found.bottleneck})"


def _results(spec: RunSpec) -> int:
    return spec.meta_tests * spec.value_functions


def _effort(spec: RunSpec) -> float:
    """Return the steps and queries of a run, to which its time is proportional."""
    return max(1, spec.budget.gradient_steps) * _results(spec) + spec.budget.queries


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table as Markdown, a line as soon as it is known."""
    heading = (*HEADING, *(f"{gpus} GPUs" for gpus in GPUS))
    print("| " + " | ".join(heading) + " |")
    print("| " + " | ".join(["---"] * len(heading)) + " |")
    for name in arguments or sys.argv[1:] or EXPERIMENTS:
        cells = Scale(name).line(name)
        print("| " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
