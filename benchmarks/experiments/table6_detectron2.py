"""Table 6 of MetricOpt with the paper's own detector, which needs detectron2."""

from benchmarks.experiments.registry import EXPERIMENTS
from benchmarks.experiments.shared.detection_table import table6

EXPERIMENTS.register("table6-detectron2")(table6("table6-detectron2", "detectron2"))
