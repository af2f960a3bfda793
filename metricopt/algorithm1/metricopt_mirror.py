"""MetricOpt with guided steps in a learned geometry, an extra beside the paper.

A mirror map belongs to the parameters of one adapter: it cannot be used with another.
"""

from dataclasses import dataclass, field

import torch

from metricopt.algorithm1.guided_method import GuidedMethod
from metricopt.algorithm1.mirror_training import (
    LearnedGeometry,
    MirrorRecipe,
    MirrorTraining,
)
from metricopt.algorithm1.recipe import MetaTrained
from metricopt.algorithm1.step_choice import Geometry
from metricopt.geometry.identity import Identity
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.methods.contract import METHODS
from metricopt.process.seeding import drawn_seed
from metricopt.tasks.task import Task

JUDGED = 16
"""New runs on which the geometry is compared with none."""


@METHODS.register("metricopt-mirror")
@dataclass(frozen=True)
class MirrorMetricOpt(GuidedMethod):
    """Meta-train a value function and a geometry, then take guided steps in it.

    The value function and its queries are those of `metricopt`. The geometry, a
    `BlockIAF`, is learned without a query: see `mirror_training`. It is used if it
    lowers eq. (6) on new runs; otherwise steps are taken in phi itself. Notes hold
    eq. (6) on these runs with the geometry and without it (`mirror_objective`,
    `plain_objective`), the mean cosine between a guided direction and what the geometry
    in use makes of it (`mirror_cosine`), the share of steps that fell back
    (`mirror_fallbacks`), and how many updates of the geometry were left out since their
    gradient was not finite (`mirror_skipped`), if any was.

    Attributes:
        geometry: how the geometry is meta-trained.
    """

    geometry: MirrorRecipe = field(default_factory=MirrorRecipe)

    def _geometry(
        self, task: Task, trained: MetaTrained, generator: torch.Generator
    ) -> Geometry:
        training = MirrorTraining(task, trained, self.geometry, generator)
        learned: MirrorMap = training.train()
        plain = Identity(learned.shapes)
        seed = drawn_seed(generator)
        found, without = (
            training.judge(mirror_map, JUDGED, seed) for mirror_map in (learned, plain)
        )
        figures = {"mirror_objective": found, "plain_objective": without}
        if training.skipped:
            figures["mirror_skipped"] = float(len(training.skipped))
        return LearnedGeometry(learned if found < without else plain, figures)
