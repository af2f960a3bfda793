"""MAML: a start is learned; new tasks are learned by gradient descent.

phi_{k+1} = phi_k - alpha grad L(phi_k), and the meta-gradient in phi_0 goes through all
K steps.

Source: Finn, Abbeel, Levine, ICML 2017, Alg. 1 and Eq. (1). Their results on images
take 10 steps in tests, 5 in training.
"""

from dataclasses import dataclass

import torch

from baselines.learners.contract import LEARNERS, Learner
from metricopt.fewshot.meta_learner import Named
from metricopt.geometry.identity import Identity
from metricopt.geometry.mirror_map import MirrorMap


@LEARNERS.register("maml")
@dataclass(frozen=True, kw_only=True)
class MAML(Learner):
    """Gradient descent from a learned phi_0: d meta-parameters.

    With a wider network it has as many as a learner with a map, so that geometry and
    capacity can be told apart.
    """

    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return the identity."""
        return Identity(phi)
