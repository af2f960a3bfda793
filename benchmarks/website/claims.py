"""What the four papers claim, and what the cells of our tables say of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.report import stats
from benchmarks.report.cells import (
    BETTER,
    NOT_SHOWN,
    UNTESTED,
    WORSE,
    Cell,
    against,
)
from benchmarks.report.paper_values import PAPER_VALUES, ROW_LABELS, PaperValue
from benchmarks.report.tables import worded
from benchmarks.website.reports import Report
from benchmarks.website.table_page import KINDS, fragment

HOLDS, IN_PART, NOT_FOUND = "holds here", "holds in part", "not shown here"
OPPOSITE, UNMEASURED = "the opposite here", "not measured here"
METRICOPT = "MetricOpt, CVPR 2021"
ALA, RELOSS = "ALA, ICML 2019", "ReLoss, ICLR 2022"
POSTER = "Learned mirror maps, ICASSP 2024"


@dataclass(frozen=True)
class Claim:
    """One thing that a paper says: a method is better than another.

    Attributes:
        paper: who says it.
        where: in which table or figure.
        text: what it says.
        row, over: the paper's rows, see `paper_values`; empty for a claim without
            numbers. Our row for `over`, if there is one, is what ours is held against.
        column: the paper's column.
        table: its table, as `paper_values` names it; empty for `where`.
        places: experiment, block, column, row and the row it is held against, apart
            by spaces, where no cell reproduces a printed number.
    """

    paper: str
    where: str
    text: str
    row: str = ""
    over: str = ""
    column: str = ""
    table: str = ""
    places: tuple[str, ...] = ()


def _numbers(paper: str, where: str, *lines: tuple[str, ...]) -> list[Claim]:
    """Return claims of one table: text, row, base and column of each."""
    table = f"ALA {where}" if paper == ALA else where
    table = {RELOSS: "ReLoss", POSTER: "Mirror descent, Table 1"}.get(paper, table)
    return [Claim(paper, where, *line, table=table) for line in lines]


MCR, AUCPR = "cifar10/mcr", "cifar10/aucpr"
BEYOND_LO = "It beats Lovász-Softmax in the Jaccard index on {}."
BEYOND_CS = "It beats training with weighted costs in F on {}."
LARGE, SHOTS = "metricopt-sgd-large-margin", "miniimagenet/5-way-{}-shot"
CLAIMS: tuple[Claim, ...] = (
    *_numbers(
        METRICOPT,
        "Table 1",
        ("MetricOpt lowers the error on CIFAR-10.", "metricopt-sgd", "ce", MCR),
        ("It does so under the large-margin loss, too.", LARGE, "large-margin", MCR),
        (
            "A learned optimizer lowers it further.",
            *("metricopt-learned", "metricopt-sgd", MCR),
        ),
        ("Dense evaluation along the loss lowers it a little.", "dense", "ce", MCR),
    ),
    *_numbers(
        METRICOPT,
        "Table 2",
        ("MetricOpt raises AUCPR on CIFAR-10.", "metricopt-sgd", "ce", AUCPR),
        (
            "It does so from the AUCPR loss, too.",
            *("metricopt-sgd-aucpr", "aucpr", AUCPR),
        ),
    ),
    *_numbers(
        METRICOPT,
        "Table 3",
        ("MetricOpt lowers the error on A9A.", "metricopt", "ce", "a9a/mcr"),
        (BEYOND_LO.format("A9A"), "metricopt", "lo", "a9a/jac"),
        (BEYOND_CS.format("A9A"), "metricopt", "cs", "a9a/f1"),
        ("It lowers the error on CoverType.", "metricopt", "ce", "cov/mcr"),
        (BEYOND_LO.format("CoverType"), "metricopt", "lo", "cov/jac"),
        (BEYOND_CS.format("CoverType"), "metricopt", "cs", "cov/f1"),
    ),
    *_numbers(
        METRICOPT,
        "Table 4",
        (
            "MetricOpt raises the accuracy of NASNet-A on ImageNet.",
            *("metricopt-nasnet", "rmsprop", "imagenet/top-1"),
        ),
        (
            "A value function of another network, ResNet-18, does so, too.",
            *("metricopt-resnet18", "rmsprop", "imagenet/top-1"),
        ),
        (
            "So does one of other data, CIFAR-10.",
            *("metricopt-cifar10", "rmsprop", "imagenet/top-1"),
        ),
        (
            "A second run gains more.",
            *("metricopt-second", "metricopt-nasnet", "imagenet/top-1"),
        ),
    ),
    *_numbers(
        METRICOPT,
        "Table 5",
        (
            "MetricOpt raises R@1 of retrieval with FastAP.",
            *("fastap+metricopt", "fastap", "sop/recall@1"),
        ),
        (
            "It does so with the recall loss, too.",
            *("recall+metricopt", "recall", "sop/recall@1"),
        ),
    ),
    *_numbers(
        METRICOPT,
        "Table 6",
        (
            "MetricOpt raises AP50 of detectors trained with cross-entropy.",
            *("cross-entropy+metricopt", "cross-entropy", "voc07/ap50"),
        ),
        (
            "It raises AP50 of those trained with the AP loss.",
            *("ap+metricopt", "ap", "voc07/ap50"),
        ),
    ),
    Claim(
        METRICOPT,
        "Figure 3",
        "The ordinal term of the value function improves the result.",
        places=(
            "fig3 balanced a9a/mcr recipe no-ordinal",
            "fig3 balanced a9a/f1 recipe no-ordinal",
        ),
    ),
    Claim(
        METRICOPT,
        "Figure 3",
        "So does the uncertainty of interpolated metrics.",
        places=(
            "fig3 balanced a9a/mcr recipe no-sigma",
            "fig3 balanced a9a/f1 recipe no-sigma",
        ),
    ),
    Claim(
        METRICOPT,
        "Figure 4",
        "With SGD, MetricOpt ends at a better AUCPR than the loss alone.",
        places=("fig4 natural small/aucpr-macro-logits metricopt loss-only",),
    ),
    Claim(
        METRICOPT,
        "Figure 4",
        "So it does with Adam.",
        places=("fig4 natural small/aucpr-macro-logits metricopt-adam loss-only-adam",),
    ),
    Claim(
        METRICOPT,
        "Supplement",
        "Half as many observations, K = 2.5 % of T, hurt.",
        places=("figs4 natural cifar10/worst-class-error recipe k2",),
    ),
    Claim(
        METRICOPT,
        "Supplement",
        "The biases of the last layer are not enough for phi.",
        places=("figs4 natural cifar10/worst-class-error recipe last-biases",),
    ),
    *_numbers(
        ALA,
        "Table 1",
        ("ALA lowers the error on CIFAR-10.", "ala-single", "ce", MCR),
        ("Several networks at once lower it further.", "ala", "ce", MCR),
        ("A fixed confusion matrix lowers it a little.", "ala-confusion", "ce", MCR),
        ("L2T-DLF lowers the error.", "l2t-dlf", "ce", MCR),
        ("Large-margin softmax lowers it.", "large-margin", "ce", MCR),
    ),
    *_numbers(
        ALA,
        "Table 2",
        ("ALA raises AUCPR on CIFAR-10.", "ala", "ce", AUCPR),
        ("The AUCPR loss raises it.", "aucpr", "ce", AUCPR),
    ),
    *_numbers(
        ALA,
        "Table 5",
        ("A second run can use the policy of the first.", "ala-reuse", "ce", MCR),
        ("It can be learned further there.", "ala-finetune", "ce", MCR),
    ),
    *_numbers(
        RELOSS,
        "CIFAR",
        ("ReLoss lowers the error on CIFAR-10.", "reloss", "ce", MCR),
        ("It lowers the error on CIFAR-100.", "reloss", "ce", "cifar100/mcr"),
    ),
    Claim(
        RELOSS,
        "Method",
        "A loss that learns ranks is better than one that learns values.",
        places=("reloss-cifar natural cifar10/mcr reloss reloss-regression",),
    ),
    *_numbers(
        POSTER,
        "Table 1",
        (
            "blockIAF is better than MAML, 5-way 1-shot.",
            *("mirror-descent", "maml", SHOTS.format(1)),
        ),
        (
            "It is better with five shots, too.",
            *("mirror-descent", "maml", SHOTS.format(5)),
        ),
    ),
    Claim(
        POSTER,
        "Method",
        "A learned mirror map adapts better than learned rates; here on sine waves.",
        places=(
            "sine new-tasks sine/5-steps block-iaf meta-sgd",
            "sine new-tasks sine/10-steps block-iaf meta-sgd",
        ),
    ),
)


@dataclass(frozen=True)
class Witness:
    """A cell that says something of a claim."""

    page: str
    link: str
    title: str
    heading: str
    ours: str
    base: str
    base_label: str
    verdict: str
    kind: str
    apart: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim with the paper's numbers, our cells, and what they say together."""

    claim: Claim
    printed: str
    witnesses: tuple[Witness, ...]

    @property
    def verdict(self) -> str:
        """What our cells say of the claim."""
        found = {witness.kind for witness in self.witnesses}
        if not found:
            return UNMEASURED
        if KINDS[BETTER] not in found:
            return OPPOSITE if KINDS[WORSE] in found else NOT_FOUND
        return HOLDS if len(found) == 1 else IN_PART


def judged(reports: Sequence[Report]) -> list[Judged]:
    """Return all claims with what the reports say of them."""
    return [
        Judged(claim, printed(claim), tuple(_witnesses(claim, reports)))
        for claim in CLAIMS
    ]


def printed(claim: Claim) -> str:
    """Return the paper's number for a claim, and the one it is compared with."""
    if not claim.row:
        return ""
    first, second = (_value(claim, row) for row in (claim.row, claim.over))
    label = ROW_LABELS[claim.over]
    return f"{_text(first)}, {label} {_text(second)}"


def _value(claim: Claim, row: str) -> PaperValue:
    return next(value for value in PAPER_VALUES if _is(value, claim, row))


def _is(value: PaperValue, claim: Claim, row: str) -> bool:
    place = (value.table, value.row, value.column)
    return place == (claim.table, row, claim.column)


def _text(value: PaperValue) -> str:
    # No printed fraction has more than four decimals.
    text = f"{value.value:.4f}".rstrip("0")
    return text.removeprefix("0")


def _witnesses(claim: Claim, reports: Sequence[Report]) -> Iterator[Witness]:
    for report in reports:
        for cell in report.cells:
            if cell.paper is not None and _is(cell.paper, claim, claim.row):
                yield _witness(report, cell, *_held_against(report, cell, claim))
        for place in map(str.split, claim.places):
            experiment, block, column, row, over = place
            found = report.by_place.get((block, row, column))
            if report.layout.experiment == experiment and found is not None:
                base = _base(report, found, over)
                yield _witness(report, found, base, _verdict(base, found))


def _held_against(report: Report, cell: Cell, claim: Claim) -> tuple[Cell | None, str]:
    """Return the cell that the paper's number is compared with, and the verdict.

    If we lack the paper's base row, it is the cell of our table's base row.
    """
    for other in report.cells:
        same_place = other.block == cell.block and other.column == cell.column
        paper = other.paper
        if same_place and paper is not None and _is(paper, claim, claim.over):
            # The table has tested it, and corrected for several tests.
            tested = other.row.name == cell.row.base_row
            verdict = cell.verdict if tested else _verdict(other, cell)
            return other, verdict or UNTESTED
    return _base(report, cell, cell.row.base_row), cell.verdict or UNTESTED


def _base(report: Report, cell: Cell, row: str | None) -> Cell | None:
    return report.by_place.get((cell.block.name, row or "", cell.column.name))


def _verdict(base: Cell | None, cell: Cell) -> str:
    """Return how a cell compares with one that it is not tested against in its table.

    This is one question by itself, so its p value is not adjusted.
    """
    found = against(base, cell)
    if found is None or found.p_value is None:
        return UNTESTED
    if found.p_value < stats.LEVEL:
        return BETTER if found.gain > 0 else WORSE
    return NOT_SHOWN


def _witness(report: Report, cell: Cell, base: Cell | None, verdict: str) -> Witness:
    column = cell.column
    return Witness(
        report.name,
        fragment(cell.block.name, cell.row.name, column.name),
        report.layout.title,
        f"{column.heading}, {cell.block.label}",
        column.summary(cell.all_values),
        column.summary(base.all_values) if base else "",
        base.row.label if base else "",
        worded(verdict, column),
        KINDS.get(verdict, ""),
        column.not_comparable or cell.block.not_comparable,
    )
