"""A rival, a problem and a metric in one file outside the packages."""

import torch

from baselines.phi_methods.contract import RIVALS
from benchmarks.problems.images.tiers import SIZES, images
from benchmarks.problems.tabular.tiers import DIGIT
from benchmarks.problems.tabular.tiers import SIZES as TABULAR_SIZES
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import column_of
from benchmarks.tables.table import ADDITIONS, Addition, Place
from metricopt.methods.contract import Method
from metricopt.methods.result import Archive
from metricopt.metrics.base import METRICS
from metricopt.metrics.confusion import CountMetric, ratio

RIVAL, METRIC = "half-way", "specificity"
DIGIT_3 = DIGIT.at(
    "smoke", name="digit-3", data=DIGIT.data.__class__("digits", "", (3,))
)
FLAT = images("flat", "digits")


class HalfWay(Method):
    """Queries points on the way down the loss gradient, and keeps the best."""

    sees = "loss gradients"

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        archive = Archive(task, budget, rows)
        phi = torch.zeros(rows, task.size, requires_grad=True)
        (slope,) = torch.autograd.grad(task.losses(phi, generator).sum(), phi)
        lengths = torch.linspace(0, 1, archive.remaining + 1)[1:, None]
        archive.query(-lengths * torch.nn.functional.normalize(slope)[:, None])
        return archive.result()


class Specificity(CountMetric):
    """True negative rate: TN / (TN + FP), in [0, 1]."""

    name = METRIC
    higher_is_better = True
    binary = True

    def _scores(self, counts):
        negatives = counts.true_negatives + counts.false_positives
        return ratio(counts.true_negatives, negatives)[:, 1]


def _binary(tier):
    return Place("balanced", DIGIT_3.at(tier, size=TABULAR_SIZES[tier]), Unit("f1"))


def _metric(tier):
    return Place("balanced", DIGIT.at(tier), Unit(METRIC))


def _images(tier):
    return Place("natural", FLAT.at(tier, size=SIZES[tier]), Unit("mcr"))


UNITS = (
    (RIVALS, RIVAL, HalfWay),
    (METRICS, METRIC, Specificity),
    (
        ADDITIONS,
        "digit-3",
        Addition("table3", lambda: column_of(DIGIT_3, Unit("f1")), _binary),
    ),
    (
        ADDITIONS,
        "digit-8-specificity",
        Addition("table3", lambda: column_of(DIGIT, Unit(METRIC)), _metric),
    ),
    *(
        (
            ADDITIONS,
            f"{table}-flat",
            Addition(table, lambda: column_of(FLAT, Unit("mcr")), _images),
        )
        for table in ("table1", "mismatch")
    ),
)
