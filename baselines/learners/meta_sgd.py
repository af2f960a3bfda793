"""Meta-SGD: a start and a step size for every coordinate are learned.

phi_{k+1} = phi_k - alpha exp(l) * grad L(phi_k), coordinate by coordinate. As a dual
iteration: g(z) = exp(l) z and z_0 = exp(-l) phi_0, where phi_0 is learned.

Source: Li et al., arXiv 1707.09835, which takes one step and draws the step
sizes uniformly from [0.005, 0.1]. Differs: logarithms are learned, which keep the sizes
positive; all sizes are alpha at first, and there are as many steps as of the other
learners, as in the released code of Zhang et al., arXiv 2312.13486.
"""

from dataclasses import dataclass

import torch

from baselines.learners.contract import LEARNERS, Learner
from metricopt.fewshot.meta_learner import Named
from metricopt.geometry.diagonal import Diagonal
from metricopt.geometry.mirror_map import MirrorMap


@LEARNERS.register("meta-sgd")
@dataclass(frozen=True, kw_only=True)
class MetaSGD(Learner):
    """Gradient descent with learned step sizes: 2 d meta-parameters, phi_0 and l."""

    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return a positive diagonal matrix."""
        return Diagonal(phi)
