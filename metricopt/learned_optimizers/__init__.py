"""Learned optimizers of phi: optimizers whose weights are learned over many tasks.

::

    eq. (5)    the optimizer's MLP       `metricopt_mlp.MetricOptMLP`
    eq. (6)    what a run is judged by   `objective.Objective`
    eq. (7)    smoothing, two estimators and their merging:
                                         `estimators`, `meta_gradient.MetaGradient`
    line 6     the weights' updates      `meta_training.train_optimizer`
    line 12    phi <- phi + alpha u      `stepper.LearnedStepper`, `unroll.Unroll`

`contract` says what an optimizer is, `inner_tasks` what it is trained on. What a user
needs is offered here; it is imported on first access.

Source: Huang et al., CVPR 2021, supplement B; Metz et al., arXiv 1810.10180.
"""

from typing import TYPE_CHECKING

from metricopt.late_names import late_names

if TYPE_CHECKING:
    from metricopt.learned_optimizers.contract import LEARNED, LearnedOptimizer
    from metricopt.learned_optimizers.inner_tasks import InnerTasks
    from metricopt.learned_optimizers.meta_training import (
        mean_objective,
        train_optimizer,
    )
    from metricopt.learned_optimizers.metricopt_mlp import MetricOptMLP
    from metricopt.learned_optimizers.objective import Objective
    from metricopt.learned_optimizers.saved import load_optimizer, save_optimizer
    from metricopt.learned_optimizers.settings import (
        OptimizerTrained,
        OptimizerTraining,
    )
    from metricopt.learned_optimizers.stepper import LearnedStepper
    from metricopt.learned_optimizers.unroll import Unroll

__all__ = [
    "LEARNED",
    "InnerTasks",
    "LearnedOptimizer",
    "LearnedStepper",
    "MetricOptMLP",
    "Objective",
    "OptimizerTrained",
    "OptimizerTraining",
    "Unroll",
    "load_optimizer",
    "mean_objective",
    "save_optimizer",
    "train_optimizer",
]

__getattr__ = late_names(
    __name__,
    {
        "LEARNED": ".contract",
        "InnerTasks": ".inner_tasks",
        "LearnedOptimizer": ".contract",
        "LearnedStepper": ".stepper",
        "MetricOptMLP": ".metricopt_mlp",
        "Objective": ".objective",
        "OptimizerTrained": ".settings",
        "OptimizerTraining": ".settings",
        "Unroll": ".unroll",
        "load_optimizer": ".saved",
        "mean_objective": ".meta_training",
        "save_optimizer": ".saved",
        "train_optimizer": ".meta_training",
    },
)
