"""The numbers printed in the papers, as data, each with its table, row and column."""

from dataclasses import dataclass

METRICOPT = "Huang et al., CVPR 2021"
ALA = "Huang et al., ICML 2019"
RELOSS = "Huang et al., ICLR 2022"
POSTER = "Zhang et al., ICASSP 2024"
JACCARD_NOTE = (
    "The paper's JAC is not the positive-class Jaccard index. It is comparable with "
    "the legacy variant only."
)

CARRIED_NOTE = (
    "The paper's 84.6 and 94.2 are those of ALA's table (Huang et al., ICML 2019), "
    "carried over from older work."
)

INTERVAL_NOTE = (
    "The poster prints 95 % intervals over tasks after its numbers. Those of other "
    "methods are from their papers, which have other networks and trainings."
)

ROW_LABELS = {
    "ce": "cross-entropy",
    "sl": "learned surrogate loss",
    "lo": "Lovász-Softmax",
    "cs": "cost-sensitive",
    "metricopt": "MetricOpt",
    "large-margin": "large-margin softmax",
    "aucroc": "pairwise AUCROC loss",
    "aucpr": "AUCPR loss",
    "l2t-dlf": "L2T-DLF",
    "moew": "example weighting (MOEW)",
    "ala": "adaptive loss alignment (ALA)",
    "blackbox": "black-box differentiation",
    "dense": "CE fine-tune, dense eval",
    "metricopt-sgd": "MetricOpt (SGD)",
    "metricopt-learned": "MetricOpt (learned)",
    "metricopt-sgd-large-margin": "MetricOpt (SGD) + large-margin",
    "metricopt-learned-large-margin": "MetricOpt (learned) + large-margin",
    "metricopt-sgd-aucpr": "MetricOpt (SGD) + AUCPR loss",
    "metricopt-learned-aucpr": "MetricOpt (learned) + AUCPR loss",
    "rmsprop": "RMSProp + cross-entropy",
    "powersign-cd": "PowerSign-cd (CIFAR-10 transfer)",
    "ala-cifar10": "ALA (CIFAR-10 transfer)",
    "metricopt-resnet18": "MetricOpt (transfer from ResNet-18)",
    "metricopt-cifar10": "MetricOpt (transfer from CIFAR-10)",
    "metricopt-nasnet": "MetricOpt (ImageNet with NASNet-A)",
    "metricopt-second": "MetricOpt + 2nd run",
    "fastap": "FastAP",
    "recall": "recall loss",
    "fastap+metricopt": "MetricOpt + FastAP",
    "recall+metricopt": "MetricOpt + recall loss",
    "self-paced": "self-paced",
    "l2t": "L2T",
    "ala-single": "ALA (single network)",
    "ala-noise": "ALA (random matrix)",
    "ala-confusion": "ALA (confusion matrix)",
    "triplet": "triplet loss",
    "margin": "margin loss",
    "bier": "BIER",
    "htl": "HTL",
    "abe8": "ABE-8",
    "triplet+mixture": "triplet + ALA (distance mixture)",
    "margin+mixture": "margin + ALA (distance mixture)",
    "margin+focal": "margin + ALA (focal weighting)",
    "margin+faces": "margin + ALA (policy transfer from faces)",
    "ala-reuse": "ALA, 2nd run with the policy of the 1st",
    "ala-finetune": "ALA, 2nd run with policy fine-tuning",
    "reloss": "ReLoss",
    "mse": "squared error",
    "cross-entropy": "cross-entropy",
    "ap": "AP loss",
    "cross-entropy+metricopt": "MetricOpt + cross-entropy",
    "ap+metricopt": "MetricOpt + AP loss",
    "maml": "MAML",
    "meta-sgd": "Meta-SGD",
    "mt-net": "MT-net",
    "warpgrad": "WarpGrad",
    "meta-curvature": "Meta-Curvature",
    "meta-kfo": "Meta-KFO",
    "ecml": "ECML",
    "mirror-descent": "mirror descent, blockIAF",
}
"""The paper's rows as printed in our tables."""


@dataclass(frozen=True)
class PaperValue:
    """One printed number.

    Attributes:
        paper: the paper it is printed in.
        table: its table, such as `Table 3`.
        row: name of the method, in our words.
        column: data set and metric, such as `a9a/mcr`.
        value: the number, in `unit`.
        std: its printed deviation, in `unit`, None if none is printed.
        unit: `fraction` or `percent`.
        note: what a reader must know to compare with it.
    """

    paper: str
    table: str
    row: str
    column: str
    value: float
    std: float | None = None
    unit: str = "fraction"
    note: str = ""


def _table1(row: str, value: float, std: float | None = None) -> PaperValue:
    return PaperValue(METRICOPT, "Table 1", row, "cifar10/mcr", value, std)


def _table2(
    row: str, value: float, std: float | None = None, note: str = ""
) -> PaperValue:
    return PaperValue(METRICOPT, "Table 2", row, "cifar10/aucpr", value, std, note=note)


def _table3(row: str, column: str, value: float) -> PaperValue:
    note = JACCARD_NOTE if column.endswith("/jac") else ""
    return PaperValue(METRICOPT, "Table 3", row, column, value, note=note)


def _imagenet(
    source: str, table: str, row: str, *accuracies: float
) -> tuple[PaperValue, ...]:
    return tuple(
        PaperValue(source, table, row, f"imagenet/top-{k}", value)
        for k, value in zip((1, 5), accuracies, strict=True)
    )


def _table4(row: str, *accuracies: float) -> tuple[PaperValue, ...]:
    return _imagenet(METRICOPT, "Table 4", row, *accuracies)


def _ala4(row: str, *accuracies: float) -> tuple[PaperValue, ...]:
    return _imagenet(ALA, "ALA Table 4", row, *accuracies)


def _sop(source: str, table: str, row: str, *recalls: float) -> tuple[PaperValue, ...]:
    return tuple(
        PaperValue(source, table, row, f"sop/recall@{k}", value)
        for k, value in zip((1, 10, 100, 1000), recalls, strict=False)
    )


def _table5(row: str, *recalls: float) -> tuple[PaperValue, ...]:
    return _sop(METRICOPT, "Table 5", row, *recalls)


def _ala3(row: str, *recalls: float) -> tuple[PaperValue, ...]:
    return _sop(ALA, "ALA Table 3", row, *recalls)


def _table6(row: str, *values: float) -> tuple[PaperValue, ...]:
    return tuple(
        PaperValue(METRICOPT, "Table 6", row, f"{column}/ap50", value)
        for column, value in zip(("voc07", "voc07+12"), values, strict=True)
    )


def _ala(
    table: int, row: str, column: str, value: float, std: float | None = None
) -> PaperValue:
    return PaperValue(ALA, f"ALA Table {table}", row, f"cifar10/{column}", value, std)


def _poster(
    row: str, shots: int, value: float, interval: float | None = None
) -> PaperValue:
    column = f"miniimagenet/5-way-{shots}-shot"
    table = "Mirror descent, Table 1"
    return PaperValue(POSTER, table, row, column, value, interval, note=INTERVAL_NOTE)


# Tables 1, 2, 4, 5 and 6 print percent, and deviations over 10 runs.
PAPER_VALUES: tuple[PaperValue, ...] = (
    _table1("ce", 0.0751),
    _table1("large-margin", 0.0701),
    _table1("l2t-dlf", 0.0695),
    _table1("moew", 0.0671, 0.0008),
    _table1("ala", 0.0679, 0.0007),
    _table1("blackbox", 0.0684, 0.0005),
    _table1("dense", 0.0719, 0.0016),
    _table1("metricopt-sgd", 0.0663, 0.0005),
    _table1("metricopt-learned", 0.0658, 0.0006),
    _table1("metricopt-sgd-large-margin", 0.0656, 0.0006),
    _table1("metricopt-learned-large-margin", 0.0647, 0.0007),
    _table2("ce", 0.846, note=CARRIED_NOTE),
    _table2("aucroc", 0.942, note=CARRIED_NOTE),
    _table2("aucpr", 0.942, note=CARRIED_NOTE),
    _table2("moew", 0.946, 0.0011),
    _table2("ala", 0.949, 0.0014),
    _table2("blackbox", 0.944, 0.0007),
    _table2("dense", 0.908, 0.0018),
    _table2("metricopt-sgd", 0.957, 0.0012),
    _table2("metricopt-learned", 0.962, 0.0009),
    _table2("metricopt-sgd-aucpr", 0.966, 0.0010),
    _table2("metricopt-learned-aucpr", 0.972, 0.0008),
    _table3("ce", "a9a/mcr", 0.1520),
    _table3("ce", "cov/mcr", 0.2149),
    _table3("lo", "a9a/jac", 0.8461),
    _table3("lo", "cov/jac", 0.7406),
    _table3("cs", "a9a/f1", 0.6823),
    _table3("cs", "cov/f1", 0.7695),
    _table3("sl", "a9a/mcr", 0.1502),
    _table3("sl", "a9a/jac", 0.8488),
    _table3("sl", "a9a/f1", 0.6866),
    _table3("sl", "cov/mcr", 0.2198),
    _table3("sl", "cov/jac", 0.7808),
    _table3("sl", "cov/f1", 0.7898),
    _table3("metricopt", "a9a/mcr", 0.1369),
    _table3("metricopt", "a9a/jac", 0.8691),
    _table3("metricopt", "a9a/f1", 0.6934),
    _table3("metricopt", "cov/mcr", 0.2057),
    _table3("metricopt", "cov/jac", 0.7758),
    _table3("metricopt", "cov/f1", 0.8013),
    *_table4("rmsprop", 0.735, 0.915),
    *_table4("powersign-cd", 0.739, 0.919),
    *_table4("ala-cifar10", 0.743, 0.921),
    *_table4("metricopt-resnet18", 0.742, 0.923),
    *_table4("metricopt-cifar10", 0.744, 0.922),
    *_table4("metricopt-nasnet", 0.749, 0.927),
    *_table4("metricopt-second", 0.751, 0.930),
    *_table5("fastap", 0.764, 0.891, 0.954, 0.985),
    *_table5("recall", 0.786, 0.905, 0.960, 0.987),
    *_table5("fastap+metricopt", 0.796, 0.912, 0.963, 0.989),
    *_table5("recall+metricopt", 0.804, 0.918, 0.965, 0.990),
    *_table6("cross-entropy", 0.742, 0.804),
    *_table6("ap", 0.757, 0.814),
    *_table6("cross-entropy+metricopt", 0.778, 0.823),
    *_table6("ap+metricopt", 0.783, 0.826),
    _ala(1, "ce", "mcr", 0.0751),
    _ala(1, "self-paced", "mcr", 0.0747),
    _ala(1, "large-margin", "mcr", 0.0701),
    _ala(1, "l2t", "mcr", 0.0710),
    _ala(1, "l2t-dlf", "mcr", 0.0695),
    _ala(1, "ala-noise", "mcr", 0.0823, 0.0041),
    _ala(1, "ala-confusion", "mcr", 0.0742, 0.0004),
    _ala(1, "ala-single", "mcr", 0.0685, 0.0009),
    _ala(1, "ala", "mcr", 0.0679, 0.0007),
    _ala(2, "ce", "aucpr", 0.846),
    _ala(2, "aucroc", "aucpr", 0.942),
    _ala(2, "aucpr", "aucpr", 0.942),
    _ala(2, "ala", "aucpr", 0.949, 0.0014),
    *_ala3("triplet", 0.667, 0.824, 0.919),
    *_ala3("margin", 0.727, 0.862, 0.938, 0.980),
    *_ala3("bier", 0.727, 0.865, 0.940, 0.980),
    *_ala3("htl", 0.748, 0.883, 0.948, 0.984),
    *_ala3("abe8", 0.763, 0.884, 0.948, 0.982),
    *_ala3("triplet+mixture", 0.757, 0.894, 0.953, 0.986),
    *_ala3("margin+mixture", 0.789, 0.907, 0.965, 0.989),
    *_ala3("margin+focal", 0.779, 0.901, 0.958, 0.987),
    *_ala3("margin+faces", 0.752, 0.892, 0.949, 0.984),
    *_ala4("rmsprop", 0.735, 0.915),
    *_ala4("powersign-cd", 0.739, 0.919),
    *_ala4("ala-cifar10", 0.743, 0.921),
    *_ala4("ala", 0.746, 0.926),
    _ala(5, "ce", "mcr", 0.0751),
    _ala(5, "ala", "mcr", 0.0679, 0.0007),
    _ala(5, "ala-reuse", "mcr", 0.0672, 0.0004),
    _ala(5, "ala-finetune", "mcr", 0.0672, 0.0002),
    # Printed as accuracies, 94.32 and 94.57.
    PaperValue(RELOSS, "ReLoss", "ce", "cifar10/mcr", 0.0568),
    PaperValue(RELOSS, "ReLoss", "reloss", "cifar10/mcr", 0.0543),
    # 73.61 and 74.15.
    PaperValue(RELOSS, "ReLoss", "ce", "cifar100/mcr", 0.2639),
    PaperValue(RELOSS, "ReLoss", "reloss", "cifar100/mcr", 0.2585),
    # 70.4 and 71.9, of SimpleBaseline on ResNet-50; HRNet, 74.4 and 74.8, is not here.
    PaperValue(RELOSS, "ReLoss pose", "mse", "coco/oks-ap", 0.704),
    PaperValue(RELOSS, "ReLoss pose", "reloss", "coco/oks-ap", 0.719),
    # Of MacBERT-base; the poster prints percent.
    PaperValue(RELOSS, "ReLoss reading", "ce", "reading/rouge-l", 0.514),
    PaperValue(RELOSS, "ReLoss reading", "ce", "reading/bleu-4", 0.503),
    PaperValue(RELOSS, "ReLoss reading", "ce", "reading/span-f1", 0.539),
    PaperValue(RELOSS, "ReLoss reading", "reloss", "reading/rouge-l", 0.518),
    PaperValue(RELOSS, "ReLoss reading", "reloss", "reading/bleu-4", 0.506),
    PaperValue(RELOSS, "ReLoss reading", "reloss", "reading/span-f1", 0.542),
    # Of a network that the poster calls NAT-Base.
    PaperValue(RELOSS, "ReLoss translation", "ce", "wmt16-en-ro/bleu", 0.2924),
    PaperValue(RELOSS, "ReLoss translation", "reloss", "wmt16-en-ro/bleu", 0.3007),
    PaperValue(RELOSS, "ReLoss translation", "ce", "wmt16-ro-en/bleu", 0.2897),
    PaperValue(RELOSS, "ReLoss translation", "reloss", "wmt16-ro-en/bleu", 0.2968),
    _poster("maml", 1, 0.4870, 0.0184),
    _poster("maml", 5, 0.6311, 0.0092),
    _poster("meta-sgd", 1, 0.5047, 0.0187),
    _poster("meta-sgd", 5, 0.6403, 0.0094),
    _poster("mt-net", 1, 0.5170, 0.0184),
    _poster("warpgrad", 1, 0.523, 0.008),
    _poster("warpgrad", 5, 0.684, 0.006),
    _poster("meta-curvature", 1, 0.5423, 0.0088),
    _poster("meta-curvature", 5, 0.6799, 0.0073),
    _poster("meta-kfo", 5, 0.649),
    _poster("ecml", 1, 0.4894, 0.0080),
    _poster("ecml", 5, 0.6526, 0.0067),
    _poster("mirror-descent", 1, 0.5610, 0.0143),
    _poster("mirror-descent", 5, 0.6959, 0.0071),
)


def paper_rows(table: str) -> tuple[str, ...]:
    """Return the rows of a table of the paper, in its order."""
    rows = (printed.row for printed in PAPER_VALUES if printed.table == table)
    return tuple(dict.fromkeys(rows))


def find_paper_value(table: str, row: str, column: str) -> PaperValue | None:
    """Return the number printed at a row and column of a table, None if there is none.

    Args:
        table: such as `Table 3`.
        row: method, such as `metricopt`.
        column: data set and metric, such as `a9a/mcr`.
    """
    for printed in PAPER_VALUES:
        if (printed.table, printed.row, printed.column) == (table, row, column):
            return printed
    return None
