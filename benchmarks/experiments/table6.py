"""Table 6 of MetricOpt with detectors of torchvision."""

from benchmarks.experiments.registry import EXPERIMENTS
from benchmarks.experiments.shared.detection_table import table6

EXPERIMENTS.register("table6")(table6("table6", "torchvision"))
