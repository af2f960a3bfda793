"""The row: everything about one line of a table, and what it may need."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

from benchmarks.problems.problem import Problem
from benchmarks.runs.spec import Arm, Settings, Unit, metric_of
from metricopt.errors import ConfigError
from metricopt.methods.contract import Sees
from metricopt.metrics.aucpr import AveragePrecision
from metricopt.registry import Registry

SEES: tuple[str, ...] = get_args(Sees)
"""What an arm can know of a problem, most hidden first."""
UNTOUCHED, LOSS_ONLY = "untouched", "loss-only"
"""Bases of most rows: what the untouched network is called, and a row's own name."""
Family = Literal[
    "untouched",
    "networks",
    "controls",
    "metricopt",
    "post hoc",
    "rivals",
    "on outputs",
    "no harm",
    "ceilings",
    "learners",
]
"""Families of rows, in the order of tables."""
Need = Callable[[Problem, Unit], str]
"""Why a row does not suit a problem and a metric, in words; empty if it does."""


@dataclass(frozen=True)
class Run:
    """What a row does on a problem.

    Attributes:
        arm: the registered arm that fills the row.
        queries: metric queries that one result may cost.
        meta_tests: repetitions within a run.
        diagnose: whether a value function is checked on held-out trajectories.
        value_functions: value functions trained on one network, by chance alone
            different; each has its own meta-tests.
        offsets: whether the adapter has output offsets, where outputs can have any.
    """

    arm: Arm
    queries: int = 0
    meta_tests: int = 1
    diagnose: bool = False
    value_functions: int = 1
    offsets: bool = False


Fill = Callable[[Problem, Unit], Run]
"""What a row does on a problem, towards a metric."""


def always(run: Run) -> Fill:
    """Return what does the same on every problem, towards every metric."""
    return lambda problem, metric: run


def _nothing_to_do(problem: Problem, metric: Unit) -> Run:
    raise ConfigError(f"a row without `run` cannot be run on {problem.name}")


def _as_it_is(problem: Problem) -> Problem:
    return problem


@dataclass(frozen=True, eq=False)
class Row:
    """One line of a table: how it is run, shown, charged and compared.

    Rows are told apart by identity: functions, which most of a row is, have no other.

    Attributes:
        name: name in records, `RunSpec.row`.
        label: name as printed.
        family: family of rows it stands with.
        run: what it does on a problem, towards a metric.
        base: rows it is tested against, the first that its table has; `UNTOUCHED`
            stands for the untouched network, whatever its row is called there. Empty
            for no verdict.
        paper: row of the paper that it reproduces, by table of the paper.
        sees: what its arm knows of a problem besides its metric queries, one of `SEES`;
            empty where it is not told.
        note: what a reader must know, printed below the table.
        rival_row: row that it is also compared with; None for that of the table.
        same_starts: whether meta-test i starts from the phi, and takes the batches, of
            meta-test i of every other such row on its network, or learns the same task,
            and so is paired with it.
        variant_of: row of which this one is a variant with another budget.
        budget: metric queries of such a variant; None for the row with its own budget.
        compared: whether it stands in comparisons at equal queries.
        is_primary: whether it has all replicates of its table, not the fewer ones of
            secondary rows.
        is_brief: whether it stands for its family in tables that show few rows.
        is_pictured: whether the first replicate keeps a picture of what it changed.
        on: the problem as the row changes it: another network, or another adapter.
        learns_on: the problem on which its value function is learned, or whose loss it
            follows; None for the problem that it is run on.
        needs: what it needs of problem and metric.
        short: settings of its method at tier smoke, where its arm does not say others.
        base_row: `base` as its table resolves it.
        paper_row: `paper` as its table resolves it.
    """

    name: str
    label: str
    family: Family = "controls"
    run: Fill = field(default=_nothing_to_do, repr=False)
    base: tuple[str, ...] = ()
    paper: Mapping[str, str] = field(default_factory=dict)
    sees: str = ""
    note: str = ""
    rival_row: str | None = None
    same_starts: bool = False
    variant_of: str = ""
    budget: int | None = None
    compared: bool = True
    is_primary: bool = False
    is_brief: bool = False
    is_pictured: bool = False
    on: Callable[[Problem], Problem] = field(default=_as_it_is, repr=False)
    learns_on: Problem | None = None
    needs: tuple[Need, ...] = field(default=(), repr=False)
    short: Settings = field(default_factory=dict, repr=False)
    base_row: str | None = None
    paper_row: str | None = None

    def __post_init__(self) -> None:
        if self.sees not in ("", *SEES):
            known = ", ".join(SEES)
            raise ConfigError(
                f"expected row {self.name!r} to see one of {known}; got {self.sees!r}"
            )

    @property
    def entry(self) -> str:
        """Name it goes by where budgets are compared: that of the row it varies."""
        return self.variant_of or self.name

    def why_not(self, problem: Problem, metric: Unit) -> str:
        """Return why it does not suit a problem and a metric; empty if it does."""
        return next(filter(None, (need(problem, metric) for need in self.needs)), "")

    def running(self, **changes: Any) -> Self:
        """Return the row with other fields of `Run`."""

        def run(problem: Problem, metric: Unit) -> Run:
            return replace(self.run(problem, metric), **changes)

        return replace(self, run=run)


def family(of: Family, **usual: Any) -> Callable[..., Row]:
    """Return what makes rows of a family of name, label, run and further fields.

    Args:
        of: the family.
        **usual: fields of its rows, where they say nothing else.
    """

    def row(name: str, label: str, run: Fill, **more: Any) -> Row:
        return Row(name, label, of, run=run, **{**usual, **more})

    return row


ROWS: Registry[Row] = Registry("row", "benchmarks.rows")
"""Rows that stand wherever a table takes all rows that suit."""


def register(*rows: Row) -> None:
    """Let rows stand wherever a table takes all rows that suit, in this order."""
    for row in rows:
        ROWS.register(row.name)(row)


def two_classes(problem: Problem, metric: Unit) -> str:
    """Say why a row that moves one threshold does not suit."""
    return "" if problem.classes == 2 else "needs two classes"


def several_classes(problem: Problem, metric: Unit) -> str:
    """Say why a row that weighs classes one by one does not suit."""
    return "" if problem.classes > 2 else "needs more than two classes"


def classes(problem: Problem, metric: Unit) -> str:
    """Say why a row that shifts scores of classes does not suit."""
    return "" if problem.classes else "needs outputs that score classes"


def decisions(problem: Problem, metric: Unit) -> str:
    """Say why a row that moves decisions between classes does not suit."""
    if isinstance(metric_of(metric), AveragePrecision):
        return "moves all scores of a class, which leaves rankings as they are"
    return ""


def only(*metrics: str) -> Need:
    """Return the need of one of some metrics, by name."""

    def need(problem: Problem, metric: Unit) -> str:
        if metric.label in metrics:
            return ""
        return f"is defined for {', '.join(metrics)} alone"

    return need


def small_phi(why: str) -> Need:
    """Return the need of an adapter with few parameters, and why in words."""

    def need(problem: Problem, metric: Unit) -> str:
        return "" if problem.is_small else why

    return need


def large_phi(why: str) -> Need:
    """Return the need of an adapter with many parameters, and why in words."""

    def need(problem: Problem, metric: Unit) -> str:
        return why if problem.is_small else ""

    return need


def queries(least: int) -> Need:
    """Return the need of so many queries of a search."""

    def need(problem: Problem, metric: Unit) -> str:
        if least <= problem.size.queries:
            return ""
        return f"makes {least:,} queries, more than searches make at this tier"

    return need
