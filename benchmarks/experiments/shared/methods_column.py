"""The column of networks that methods train, in a table that has other columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from benchmarks.experiments.shared.plans import Part, table_specs
from benchmarks.experiments.shared.taught_rows import (
    TRAINING,
    row,
    taught_column,
    taught_rows,
)
from benchmarks.problems.images import tiers as images
from benchmarks.problems.images.taught import (
    CE,
    SIZES,
    TaughtNetwork,
    described,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Row
from benchmarks.runs.spec import RunSpec


@dataclass(frozen=True)
class MethodsColumn:
    """One more column: each method trains a network of its own.

    Its row of cross-entropy is that of the other columns. What MetricOpt makes of such
    networks stands in the tables of ALA and ReLoss.

    Attributes:
        experiment: the table.
        metric: what the methods work towards.
        label: of the metric.
        methods: their names, each with the paper's row or None.
        paper_column: what it is held beside; None if the paper has another network.
    """

    experiment: str
    metric: str
    label: str
    methods: Mapping[str, str | None] = field(hash=False)
    paper_column: str | None = None

    def column(self, tier: str) -> Column:
        """Return the column at a tier."""
        name, label = f"methods/{self.metric}", f"methods {self.label}"
        named = SIZES[tier].problem
        column = taught_column(tier, name, label, self.metric, named)
        return replace(
            column, paper_column=None if tier == "smoke" else self.paper_column
        )

    def specs(
        self, tier: str, replicates: int | None, offline: bool | None
    ) -> list[RunSpec]:
        """Return its runs."""
        size = SIZES[tier]
        networks = {images.CROSS_ENTROPY: TaughtNetwork(CE, self.metric)}
        networks |= {name: TaughtNetwork(name, self.metric) for name in self.methods}
        rows = taught_rows(tier, networks, (), offline=offline)
        name = self.column(tier).name
        part = Part("natural", name, self.metric, size.steps, rows)
        count = replicates or size.replicates
        return table_specs(self.experiment, tier, [part], replicates=count)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Its rows, but for that of cross-entropy."""
        return tuple(
            row(name, images.CROSS_ENTROPY, paper)
            for name, paper in self.methods.items()
        )

    def note(self, tier: str) -> str:
        """Return what a reader is told of it."""
        size = SIZES[tier]
        return (
            f"Column `methods {self.label}`: {described(tier)}; {size.replicates} "
            f"replicates, each with a network for every method. {TRAINING} What is "
            "said above of networks, images and sizes is of the other columns. "
            "MetricOpt on top of such networks: `ala-table1`, `ala-table2` and "
            "`reloss-cifar`."
        )
