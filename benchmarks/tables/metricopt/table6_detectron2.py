"""Table 6 of MetricOpt with the detectors of detectron2, as in the paper."""

from functools import partial

from benchmarks.tables.metricopt.table6 import table6
from benchmarks.tables.table import register

register("table6-detectron2", partial(table6, "table6-detectron2", "detectron2"))
