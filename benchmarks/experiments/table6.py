"""Table 6 of MetricOpt with detectors of torchvision, and with the paper's own.

The latter is that of detectron2, which `table6-detectron2` needs.
"""

from benchmarks.experiments.registry import EXPERIMENTS
from benchmarks.experiments.shared.detection_table import table6

EXPERIMENTS.register("table6")(table6("table6", "torchvision"))
EXPERIMENTS.register("table6-detectron2")(table6("table6-detectron2", "detectron2"))
