"""Table 6 of MetricOpt with the detectors of detectron2, as in the paper."""

from functools import partial

from benchmarks.tables.metricopt.table6 import table6
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import experiment_of

NAME = "table6-detectron2"

EXPERIMENTS.register("table6-detectron2")(
    experiment_of(NAME, partial(table6, NAME, "detectron2"))
)
