"""From the parts of a table to specs: the one loop of all experiments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.experiments.shared.smoke_arms import shorter
from benchmarks.runs.spec import Arm, RunSpec, Spending, Unit
from metricopt.errors import ConfigError

ALSO = {"jaccard": ("jaccard-legacy",), "aucpr": ("aucpr-macro-logits",)}
"""Further metrics that results are judged by, by the metric of the run."""


@dataclass(frozen=True)
class Plan:
    """How a row is filled.

    Attributes:
        arm: what is run.
        queries: metric queries that one result may cost.
        meta_tests: repetitions within a run.
        diagnose: whether a value function is checked on held-out trajectories.
        value_functions: how many are trained on one network, by chance alone different;
            each has its own meta-tests.
        replicates: the most a row has, however many its table has; None for all.
        offsets: whether its adapter has output offsets.
        pictured: whether its first replicate keeps a picture of what it changed.
    """

    arm: Arm
    queries: int = 0
    meta_tests: int = 1
    diagnose: bool = False
    value_functions: int = 1
    replicates: int | None = None
    offsets: bool = False
    pictured: bool = False


Plans = Mapping[str, Plan]
"""How rows are filled, by name."""


@dataclass(frozen=True)
class Part:
    """A column of a block, with the rows that fill it.

    Attributes:
        block: name of the block.
        column: name of the column.
        metric: what the runs work towards; a name, or a unit with settings.
        steps: gradient steps of fine-tuning, T.
        rows: the pipeline and the plan of every row, by name.
        also: further metrics that results are judged by; those of `ALSO` if empty.
    """

    block: str
    column: str
    metric: str | Unit
    steps: int
    rows: Mapping[str, tuple[Unit, Plan]]
    also: tuple[Unit, ...] = ()

    @property
    def metrics(self) -> tuple[Unit, ...]:
        """What the runs work towards, then what their results are judged by too."""
        unit = Unit(self.metric) if isinstance(self.metric, str) else self.metric
        usual = tuple(Unit(name) for name in ALSO.get(unit.label, ()))
        return (unit, *(self.also or usual))


def on_pipeline(
    pipeline: Unit, plans: Plans, *, with_offsets: Unit | None = None
) -> dict[str, tuple[Unit, Plan]]:
    """Return rows that all run on one problem and network.

    Args:
        pipeline: the problem with the network and its adapter.
        plans: how rows are filled.
        with_offsets: the same, with output offsets, for the plans that ask for them.

    Raises:
        ConfigError: if a plan asks for offsets, and there is no such pipeline.
    """
    wanting = [row for row, plan in plans.items() if plan.offsets]
    if wanting and with_offsets is None:
        raise ConfigError(f"no pipeline has the output offsets of {', '.join(wanting)}")
    return {
        row: (with_offsets if plan.offsets and with_offsets else pipeline, plan)
        for row, plan in plans.items()
    }


def table_specs(
    experiment: str, tier: str, parts: Iterable[Part], *, replicates: int
) -> list[RunSpec]:
    """Return the specs of a table: every row of every part.

    Args:
        experiment: its name.
        tier: of all runs.
        parts: of the table.
        replicates: of every row that does not ask for fewer.
    """
    return [
        RunSpec(
            experiment=experiment,
            tier=tier,
            block=part.block,
            row=row,
            column=part.column,
            replicate=replicate,
            pipeline=pipeline,
            metric=part.metrics[0],
            also=part.metrics[1:],
            arm=shorter(plan.arm) if tier == "smoke" else plan.arm,
            budget=Spending(plan.queries, part.steps),
            meta_tests=plan.meta_tests,
            diagnose=plan.diagnose,
            value_functions=plan.value_functions,
            pictured=plan.pictured and replicate == 0,
        )
        for part in parts
        for row, (pipeline, plan) in part.rows.items()
        for replicate in range(min(replicates, plan.replicates or replicates))
    ]
