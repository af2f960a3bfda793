"""Fine-tune a pre-trained network towards the metric it is judged by.

`finetune` is the main entry point; its building blocks are exported here as well. The
methods, and whatever needs gpytorch, scipy or cma, are imported on first access.
"""

from typing import TYPE_CHECKING

from metricopt.adapters.auto import auto_adapter
from metricopt.adapters.base import Adapter
from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.export import load_phi, save_phi
from metricopt.adapters.film import FiLM
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.algorithm1.optimizer import Guidance, MetricOptimizer
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import (
    BudgetExceededError,
    ConfigError,
    DataError,
    DivergedError,
    LossError,
    MetricError,
    MetricOptError,
    ShapeError,
)

# The first import of the submodule sets the name `finetune` to the module. It happens
# here, so that it cannot hide the function later. The same holds for `tune`.
from metricopt.finetune import finetune
from metricopt.finetuned import Finetuned
from metricopt.late_names import late_names
from metricopt.losses.portfolio import PORTFOLIO, LossFacts
from metricopt.methods.contract import METHODS, Method
from metricopt.methods.known import (
    Known,
    KnownOptimizer,
    KnownStatistics,
    KnownValueFunction,
    load_known,
    save_known,
)
from metricopt.methods.result import Budget
from metricopt.metrics.base import METRICS, Metric
from metricopt.metrics.constrained import Bound, at_least, at_most
from metricopt.options import FinetuneOptions
from metricopt.reading.callables import make_metric
from metricopt.reading.meaning import Meaning
from metricopt.statistics.contract import STATISTICS, Statistics
from metricopt.tasks.examples import LazySplit
from metricopt.tasks.network_task import NetworkTask
from metricopt.tasks.phi_optimizers import PHI_OPTIMIZERS, PhiOptimizer
from metricopt.tasks.sampling import (
    BalancedSampler,
    ClassSampler,
    HierarchicalSampler,
    NaturalSampler,
    Split,
)
from metricopt.tasks.task import Task
from metricopt.tune import tune
from metricopt.tuned import Tuned

if TYPE_CHECKING:
    from metricopt.algorithm1.metricopt import MetricOpt
    from metricopt.methods.cma_es import CMAES
    from metricopt.methods.guided_cma import GuidedCMA
    from metricopt.on_outputs.metricopt_outputs import MetricOptOutputs
    from metricopt.on_outputs.no_harm import NoHarm

__version__ = "0.1.0"

__all__ = [
    "CMAES",
    "METHODS",
    "METRICS",
    "PHI_OPTIMIZERS",
    "PORTFOLIO",
    "STATISTICS",
    "Adapter",
    "BalancedSampler",
    "Bound",
    "Budget",
    "BudgetExceededError",
    "ClassSampler",
    "ConfigError",
    "DataError",
    "DivergedError",
    "DynamicBias",
    "FiLM",
    "FinetuneOptions",
    "Finetuned",
    "Guidance",
    "GuidedCMA",
    "HierarchicalSampler",
    "Known",
    "KnownOptimizer",
    "KnownStatistics",
    "KnownValueFunction",
    "LazySplit",
    "LossError",
    "LossFacts",
    "Meaning",
    "Method",
    "Metric",
    "MetricError",
    "MetricOpt",
    "MetricOptError",
    "MetricOptOutputs",
    "MetricOptimizer",
    "NaturalSampler",
    "NetworkTask",
    "NoHarm",
    "OutputOffsets",
    "PhiOptimizer",
    "ShapeError",
    "Split",
    "Statistics",
    "Task",
    "Tuned",
    "ValueFunction",
    "at_least",
    "at_most",
    "auto_adapter",
    "finetune",
    "load_known",
    "load_phi",
    "make_metric",
    "save_known",
    "save_phi",
    "tune",
]

__getattr__ = late_names(
    __name__,
    {
        "CMAES": "metricopt.methods.cma_es",
        "GuidedCMA": "metricopt.methods.guided_cma",
        "MetricOpt": "metricopt.algorithm1.metricopt",
        "MetricOptOutputs": "metricopt.on_outputs.metricopt_outputs",
        "NoHarm": "metricopt.on_outputs.no_harm",
    },
)
