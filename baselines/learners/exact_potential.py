"""Mirror descent with a map that is the gradient of a convex potential.

g(z) = D z + W^T tanh(W z + b) + m is the gradient of a strongly convex h*, so the dual
iteration is mirror descent in the full sense, which blockIAF is not.

Source: "research outlook: model h*" of arXiv 2312.13486. It gives no form of h*; this
one is ours.
"""

from dataclasses import dataclass

import torch

from baselines.learners.contract import LEARNERS, Learner
from metricopt.errors import require_counts
from metricopt.fewshot.meta_learner import Named
from metricopt.geometry.exact_potential import ExactPotential
from metricopt.geometry.mirror_map import MirrorMap


@LEARNERS.register("exact-potential")
@dataclass(frozen=True, kw_only=True)
class ExactPotentialDescent(Learner):
    """Mirror descent: (3 + rank) d + rank meta-parameters.

    Attributes:
        rank: rows of W.
    """

    rank: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts("exact-potential", vars(self), "rank")

    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return the map; b is drawn, but it is the identity."""
        return ExactPotential(phi, self.rank, generator=generator)
