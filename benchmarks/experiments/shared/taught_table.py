"""Tables whose rows are networks that methods train, and MetricOpt on top of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.experiments.protocols import images
from benchmarks.experiments.protocols.taught import (
    CE,
    MCR,
    SIZES,
    TaughtNetwork,
    TaughtSize,
    described,
    taught_pipeline,
)
from benchmarks.experiments.registry import check_tier
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.image_arms import metricopt
from benchmarks.experiments.shared.plans import Part, Plan, table_specs
from benchmarks.experiments.shared.problems import NamedProblem
from benchmarks.pipelines.images.settings import ImageProblem
from benchmarks.report.columns import Column
from benchmarks.report.layout import Row, TableLayout, finetuned
from benchmarks.runs.spec import Arm, RunSpec, Unit

LABELS = {
    CE: "cross-entropy",
    "self-paced": "self-paced, within the mini-batch",
    "self-paced-global": "self-paced, one threshold",
    "large-margin": "large-margin softmax",
    "pairwise-aucroc": "pairwise AUCROC loss",
    "aucpr": "AUCPR loss",
    "l2t-dlf": "L2T-DLF",
    "moew": "MOEW",
    "ala-noise": "ALA, random matrix",
    "ala-confusion": "ALA, confusion matrix",
    "ala": "ALA, one network",
    "ala-multi": "ALA, several networks",
    "ala-literal": "ALA, eq. 6 as printed",
    "ala-reuse": "ALA, 2nd run with the policy of the 1st",
    "ala-finetune": "ALA, 2nd run, the policy learns on",
    "reloss": "ReLoss",
    "reloss-anchored": "ReLoss, 0 at p = 1",
    "reloss-regression": "ReLoss by regression",
}
NOTES = {
    "l2t-dlf": "the teacher sees labels of the observe split, not the metric; the loss "
    "goes without the sigmoid, as that of ALA",
    "ala-multi": "one of the networks that share the controller; the steps and seconds "
    "of all are counted",
    "ala-literal": "with the sigmoid, times 4; the other rows of ALA go without it, "
    "and a negative parameter is a weight of log(1 - p)",
    "moew": "one query a trial; a trial is a shorter training from the same weights",
    "ala-confusion": "eq. 7 taken literally, in units of log C",
    "reloss": "trains twice: first with cross-entropy, to record logits",
    "reloss-anchored": "|h(p) - h(1)| instead of |h(p)|; ours",
    "reloss-regression": "the surrogate learns values instead of ranks",
}
NETWORK_LABELS = {
    "resnet8": "ResNet-8, methods:",
    "resnet32": "methods:",
    "digit-net": "methods:",
}
GONE_ON_WITH = (CE, "ala", "reloss-anchored")
"""Methods whose networks MetricOpt goes on with in tables of several columns."""
ANOTHER_NETWORK = "another network and fewer images than the paper's"
ON_TOP = ("metricopt", outputs.OURS)
"""Methods that go on with a trained network, as the ends of row names."""


def theta(trained: TaughtNetwork, tier: str) -> Plan:
    """Return the network as it was trained; the arm names what trained it."""
    return Plan(Arm("theta", trained.trained_by(tier)))


def row(name: str, paper_row: str | None = None) -> Row:
    """Return the row of a network that a method trains."""
    base = None if name == CE else CE
    return Row(name, LABELS[name], base, paper_row, NOTES.get(name, ""))


def rows_on_top(name: str) -> tuple[Row, ...]:
    """Return the rows of MetricOpt, and of MetricOpt on outputs, on a network."""
    label = LABELS[name]
    return (
        finetuned(f"{name}+metricopt", f"{label} + MetricOpt", name),
        Row(
            f"{name}+{outputs.OURS}",
            f"{label} + MetricOpt on outputs",
            name,
            sees=outputs.SCORES,
        ),
    )


def plans_on_top(size: TaughtSize) -> dict[str, Plan]:
    """Return how they are filled, by method."""
    return dict(zip(ON_TOP, (metricopt(size), outputs.ours()), strict=True))


def taught_rows(
    tier: str,
    metric: str,
    methods: tuple[str, ...],
    on_top: tuple[str, ...],
    *,
    offline: bool | None,
    network: str = "",
    named: NamedProblem[ImageProblem] | None = None,
) -> dict[str, tuple[Unit, Plan]]:
    """Return the pipeline and plan of every row, by name.

    Args:
        tier: of the runs.
        metric: that the methods work towards.
        methods: names of the methods that train networks.
        on_top: those whose networks MetricOpt goes on with.
        offline: see `benchmarks.datasets.registry.resolve_variant`.
        network: name of an image network; empty for that of the tier.
        named: the images; None for those of the tier.
    """

    def filled(trained: TaughtNetwork, plan: Plan) -> tuple[Unit, Plan]:
        adapter = images.FILM_AND_OFFSETS if plan.offsets else images.FILM
        found = taught_pipeline(
            tier, trained, offline=offline, adapter=adapter, named=named
        )
        return found, plan

    networks = {name: TaughtNetwork(name, metric, network) for name in methods}
    rows = {name: filled(each, theta(each, tier)) for name, each in networks.items()}
    for name in on_top:
        for end, plan in plans_on_top(SIZES[tier]).items():
            rows[f"{name}+{end}"] = filled(networks[name], plan)
    return rows


def methods_column(tier: str, metric: str, label: str, paper_column: str) -> Column:
    """Return the column of networks that methods train, in a table that has others."""
    size = SIZES[tier]
    return Column(
        f"{size.network}, methods/{metric}",
        f"{NETWORK_LABELS[size.network]} {label}",
        Unit(metric),
        paper_column=None if tier == "smoke" else paper_column,
        not_comparable=ANOTHER_NETWORK if tier == "local" else "",
        test_per_train=size.problem.problem.test_per_train,
    )


def methods_specs(
    experiment: str,
    tier: str,
    column: Column,
    methods: Iterable[str],
    replicates: int | None,
    offline: bool | None,
) -> list[RunSpec]:
    """Return that column's runs, cross-entropy and MetricOpt on top among them.

    Their rows are those of cross-entropy and MetricOpt in the other columns.
    """
    metric, size, names = column.metric.name, SIZES[tier], (CE, *methods)
    on_top = tuple(name for name in names if name in GONE_ON_WITH)
    found = taught_rows(tier, metric, names, on_top, offline=offline)
    rows = {
        images.CROSS_ENTROPY if name == CE else name.removeprefix(f"{CE}+"): filled
        for name, filled in found.items()
    }
    part = Part("natural", column.name, metric, size.steps, rows)
    count = replicates or size.replicates
    return table_specs(experiment, tier, [part], replicates=count)


def methods_rows(methods: Mapping[str, str | None]) -> tuple[Row, ...]:
    """Return the rows of that column, against the row of cross-entropy.

    Args:
        methods: their names, each with the paper's row or None.
    """
    found: list[Row] = []
    for name, paper in methods.items():
        found.append(replace(row(name, paper), base_row=images.CROSS_ENTROPY))
        found += rows_on_top(name) if name in GONE_ON_WITH else ()
    return tuple(found)


def methods_note(tier: str) -> str:
    """Return what a reader is told of that column."""
    return (
        f"Column `methods`: every method trains a network of its own, {described(tier)}"
        ". All begin with the same weights and take as many steps as cross-entropy."
    )


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
                    tier,
                    self.metric,
                    tuple(self.methods),
                    self.on_top,
                    offline=offline,
                    network=self._network(tier),
                    named=named,
                ),
            )
            for named in self._problems(tier)
        ]
        count = replicates or size.replicates
        return table_specs(self.experiment, tier, parts, replicates=count)

    def layout(self, tier: str) -> TableLayout:
        """Return what the table looks like at a tier."""
        rows = [row(name, paper) for name, paper in self.methods.items()]
        for name in self.on_top:
            rows += rows_on_top(name)
        return TableLayout(
            experiment=self.experiment,
            title=self.title,
            caption=f"{described(tier, self._network(tier))}.{self._size_note(tier)}",
            convention=CONVENTION,
            blocks=images.BLOCKS,
            rows=tuple(rows),
            columns=tuple(self._column(tier, each) for each in self._problems(tier)),
            paper_table=self.paper_table,
            untouched_row=CE,
            query_budgets=(),
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

    def _column(self, tier: str, named: NamedProblem[ImageProblem]) -> Column:
        name = f"{named.name}/{self.metric}"
        more: dict[str, Any] = {}
        if tier == "local":
            more["not_comparable"] = ANOTHER_NETWORK
        return Column(
            name,
            f"{named.name} {self.label}",
            Unit(self.metric),
            paper_column=None if self.paper_table is None or tier == "smoke" else name,
            test_per_train=named.problem.test_per_train,
            **more,
        )


CONVENTION = (
    "The last training of every method takes as many steps as cross-entropy, from the "
    "same weights; `times` below counts all its steps."
)
COMMON_NOTES = (
    "The last state of a network is kept, not the best: the one-cycle rate ends at 0.",
    "`queries` are all that a network's training made, and those of MetricOpt on top.",
    "Networks are trained before the runs and shared by the tables that show them.",
    "Networks that a loss alone trains, large-margin softmax and the AUC losses, begin "
    "with other random weights, and their steps are not counted.",
)
