"""First-order MAML: gradients of the inner loss are constants in the meta-gradient.

The meta-gradient is the gradient of the query loss at phi_K. The values are those of
MAML.

Source: Finn, Abbeel, Levine, ICML 2017, Sec. 5.2.
"""

from dataclasses import dataclass

import torch

from baselines.learners.contract import LEARNERS, Learner
from metricopt.fewshot.meta_learner import Named
from metricopt.geometry.identity import Identity
from metricopt.geometry.mirror_map import MirrorMap


@LEARNERS.register("maml-first-order")
@dataclass(frozen=True, kw_only=True)
class FirstOrderMAML(Learner):
    """Gradient descent from a learned phi_0: d meta-parameters."""

    order = "first"

    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return the identity."""
        return Identity(phi)
