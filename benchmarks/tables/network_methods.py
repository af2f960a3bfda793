"""Tables whose rows are networks that methods train, and MetricOpt on top of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.problems.images import tiers
from benchmarks.problems.images.method_networks import (
    CE,
    MCR,
    SIZES,
    MethodImages,
    described,
    size_at,
)
from benchmarks.problems.images.tiers import Images
from benchmarks.report.columns import Column
from benchmarks.rows import network_methods
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import NATURAL, column_of
from benchmarks.tables.table import Place, Table, table

ANOTHER_NETWORK = "another network and fewer images than the paper's"
TRAINING = (
    "The last training of every method takes as many steps as cross-entropy, from the "
    "same weights; `times` below counts all its steps."
)
ASKS = "is not trained here: this table trains a few named methods only"
COMMON_NOTES = (
    "The last state of a network is kept, not the best: the one-cycle rate ends at 0.",
    "`queries` are all that a network's training made, and those of MetricOpt on top.",
    "Networks are trained before the runs and shared by the tables that show them.",
)
SECONDS = (
    "Seconds are those of a machine on which other work ran beside some of the "
    "trainings, cross-entropy's among them. `python -m "
    "benchmarks.speed.adaptive_loss` measures ALA against plain training side by "
    "side."
)
LOSS_ALONE = (
    "Networks that a loss alone trains, large-margin softmax and the AUC losses, begin "
    "with other random weights, and their steps are not counted."
)


@dataclass(frozen=True)
class MethodTable:
    """A table of one metric whose rows are networks that methods train.

    Attributes:
        experiment: name of the table.
        title: one line.
        methods: names of the rows, in order.
        on_top: methods whose networks MetricOpt goes on with.
        metric: what all work towards.
        label: name of the metric in headings.
        paper_table: what it is held beside; None if there is nothing.
        more: other images at tier paper, beside the usual ones.
        paper_network: image network of tier paper; empty for the usual one.
        rival: row that the others are also compared with; None for none.
        whole: whether networks are trained at the sizes of `WHOLE`.
        notes: what a reader is told below.
    """

    experiment: str
    title: str
    methods: tuple[str, ...]
    on_top: tuple[str, ...] = ()
    metric: str = MCR
    label: str = "MCR"
    paper_table: str | None = None
    more: tuple[Images, ...] = ()
    paper_network: str = ""
    rival: str | None = None
    whole: bool = False
    notes: tuple[str, ...] = ()

    def __call__(self, tier: str) -> Table:
        """Return the table at a tier."""
        rows = [network_methods.trained(name, base=CE) for name in self.methods]
        for name in self.on_top:
            rows += network_methods.on_top(name)
        problems = self._problems(tier)
        alone = () if self.whole else (LOSS_ALONE,)
        metric = Unit(self.metric)
        return table(
            [
                Place("natural", problem, metric, rows=tuple(rows), asks=ASKS)
                for problem in problems
            ],
            experiment=self.experiment,
            title=self.title,
            caption=f"{self._described(tier)}.{self._size_note(tier)}",
            convention=TRAINING,
            blocks=NATURAL,
            columns=tuple(self._column(tier, problem) for problem in problems),
            paper_table=self.paper_table,
            untouched_row=CE,
            query_budgets=(),
            rival_row=self.rival,
            notes=(*self.notes, *COMMON_NOTES, *alone, SECONDS),
        )

    def _architecture(self, tier: str) -> str:
        return self.paper_network if tier == "paper" else ""

    def _problems(self, tier: str) -> list[MethodImages]:
        own = {
            "metric": self.metric,
            "architecture": self._architecture(tier),
            "whole": self.whole,
        }
        images = tiers.DIGITS if tier == "smoke" else tiers.CIFAR10
        several = (images, *(self.more if tier == "paper" else ()))
        return [MethodImages.of(each, tier, **own) for each in several]

    def _column(self, tier: str, problem: MethodImages) -> Column:
        label = f"{problem.name} {self.label}"
        column = method_column(tier, problem, self.metric, label)
        if self.paper_table is None or tier == "smoke":
            return column
        return replace(column, paper_column=column.name)

    def _size_note(self, tier: str) -> str:
        if not self.on_top:
            return ""
        size = size_at(tier, whole=self.whole)
        return (
            f" MetricOpt: FiLM on the last feature map, T = {size.steps}, "
            f"K = {size.observations}, {size.tasks} tasks."
        )

    def _described(self, tier: str) -> str:
        more = [each.name.upper().replace("CIFAR", "CIFAR-") for each in self.more]
        data = " and ".join(["CIFAR-10", *more])
        return described(tier, self._architecture(tier), data, whole=self.whole)


def method_column(tier: str, problem: MethodImages, metric: str, label: str) -> Column:
    """Return the column of such networks, without a paper's."""
    reason = ANOTHER_NETWORK if tier == "local" else ""
    return column_of(problem, Unit(metric), label, not_comparable=reason)


def methods_column(
    tier: str, metric: str, label: str, methods: Sequence[str]
) -> tuple[Place, Column, str]:
    """Return one more column of a table: each method trains a network of its own.

    Its row of cross-entropy is that of the other columns. What MetricOpt makes of such
    networks stands in the tables of ALA and ReLoss.

    Args:
        tier: decides the sizes.
        metric: what the methods work towards.
        label: name of the metric in headings.
        methods: names of the methods, in order.

    Returns:
        Where they run, the column, and what a reader is told of it.
    """
    images = tiers.DIGITS if tier == "smoke" else tiers.CIFAR10
    problem = MethodImages.of(images, tier, metric=metric)
    base = tiers.CROSS_ENTROPY
    rows = [network_methods.trained(CE, base=base, name=base)]
    rows += [network_methods.trained(name, base=base) for name in methods]
    name, size = f"methods/{metric}", SIZES[tier]
    found = method_column(tier, problem, metric, f"methods {label}")
    place = Place("natural", problem, Unit(metric), name, rows=tuple(rows), asks=ASKS)
    note = (
        f"Column `methods {label}`: {described(tier)}; {size.replicates} replicates, "
        f"each with a network for every method. {TRAINING} What is said above of "
        "networks, images and sizes is of the other columns. MetricOpt on top of such "
        "networks: `ala-table1`, `ala-table2` and `reloss-cifar`."
    )
    return place, replace(found, name=name), note
