"""MetricOpt: guided steps in phi itself, as in the paper.

Source: Huang et al., CVPR 2021, Alg. 1. Differs: see `guided_method`.
"""

from dataclasses import dataclass

import torch

from metricopt.algorithm1.guided_method import GuidedMethod
from metricopt.algorithm1.recipe import MetaTrained
from metricopt.algorithm1.step_choice import PLAIN, Geometry
from metricopt.methods.contract import METHODS
from metricopt.tasks.task import Task


@METHODS.register("metricopt")
@dataclass(frozen=True)
class MetricOpt(GuidedMethod):
    """Meta-train a value function within the budget, then take guided steps in phi."""

    def _geometry(
        self, task: Task, trained: MetaTrained, generator: torch.Generator
    ) -> Geometry:
        return PLAIN
