"""Tables whose rows are networks that methods train, and MetricOpt on top of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from benchmarks.experiments.registry import check_tier
from benchmarks.experiments.shared.plans import Part, table_specs
from benchmarks.experiments.shared.problems import NamedProblem
from benchmarks.experiments.shared.taught_rows import (
    TRAINING,
    row,
    rows_on_top,
    taught_column,
    taught_rows,
)
from benchmarks.problems.images import tiers as images
from benchmarks.problems.images.settings import ImageProblem
from benchmarks.problems.images.taught import (
    CE,
    MCR,
    SIZES,
    TaughtNetwork,
    described,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import TableLayout
from benchmarks.runs.spec import RunSpec


@dataclass(frozen=True)
class TaughtTable:
    """A table of one metric whose rows are networks that methods train.

    Attributes:
        experiment: its name.
        title: one line.
        methods: the rows, in order, each with the paper's row or None.
        on_top: methods whose networks MetricOpt goes on with.
        metric: what all work towards.
        label: of the metric's column.
        paper_table: what it is held beside; None if there is nothing.
        more: other images of tier paper, beside those of the tier.
        paper_network: image network of tier paper; empty for the usual one.
        rival: row that the others are also compared with; None for none.
        notes: what a reader is told below.
    """

    experiment: str
    title: str
    methods: Mapping[str, str | None] = field(hash=False)
    on_top: tuple[str, ...] = ()
    metric: str = MCR
    label: str = "MCR"
    paper_table: str | None = None
    more: tuple[NamedProblem[ImageProblem], ...] = ()
    paper_network: str = ""
    rival: str | None = None
    notes: tuple[str, ...] = ()

    def specs(
        self, tier: str, replicates: int | None, offline: bool | None
    ) -> list[RunSpec]:
        """Return the runs of a tier."""
        check_tier(tier, replicates)
        size = SIZES[tier]
        parts = [
            Part(
                "natural",
                self._column(tier, named).name,
                self.metric,
                size.steps,
                taught_rows(
                    tier, self._networks(tier, named), self.on_top, offline=offline
                ),
            )
            for named in self._problems(tier)
        ]
        count = replicates or size.replicates
        return table_specs(self.experiment, tier, parts, replicates=count)

    def layout(self, tier: str) -> TableLayout:
        """Return what the table looks like at a tier."""
        rows = [row(name, CE, paper) for name, paper in self.methods.items()]
        for name in self.on_top:
            rows += rows_on_top(name)
        return TableLayout(
            experiment=self.experiment,
            title=self.title,
            caption=f"{self._described(tier)}.{self._size_note(tier)}",
            convention=TRAINING,
            blocks=images.BLOCKS,
            rows=tuple(rows),
            columns=tuple(self._column(tier, each) for each in self._problems(tier)),
            paper_table=self.paper_table,
            untouched_row=CE,
            query_budgets=(),
            rival_row=self.rival,
            network_of=images.network_of,
            notes=(*self.notes, *COMMON_NOTES),
        )

    def _network(self, tier: str) -> str:
        return self.paper_network if tier == "paper" else ""

    def _size_note(self, tier: str) -> str:
        if not self.on_top:
            return ""
        size = SIZES[tier]
        return (
            f" MetricOpt: FiLM on the last feature map, T = {size.steps}, "
            f"K = {size.observations}, {size.tasks} tasks."
        )

    def _problems(self, tier: str) -> tuple[NamedProblem[ImageProblem], ...]:
        return (SIZES[tier].problem, *(self.more if tier == "paper" else ()))

    def _networks(
        self, tier: str, named: NamedProblem[ImageProblem]
    ) -> dict[str, TaughtNetwork]:
        network = self._network(tier)
        return {
            name: TaughtNetwork(name, self.metric, network, named)
            for name in self.methods
        }

    def _described(self, tier: str) -> str:
        more = [named.name.upper().replace("CIFAR", "CIFAR-") for named in self.more]
        data = " and ".join(["CIFAR-10", *more])
        return described(tier, self._network(tier), data)

    def _column(self, tier: str, named: NamedProblem[ImageProblem]) -> Column:
        name, label = f"{named.name}/{self.metric}", f"{named.name} {self.label}"
        column = taught_column(tier, name, label, self.metric, named)
        if self.paper_table is None or tier == "smoke":
            return column
        return replace(column, paper_column=name)


COMMON_NOTES = (
    "The last state of a network is kept, not the best: the one-cycle rate ends at 0.",
    "`queries` are all that a network's training made, and those of MetricOpt on top.",
    "Networks are trained before the runs and shared by the tables that show them.",
    "Networks that a loss alone trains, large-margin softmax and the AUC losses, begin "
    "with other random weights, and their steps are not counted.",
)
