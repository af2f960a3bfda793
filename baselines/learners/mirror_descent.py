"""Mirror descent with blockIAF: a dual start and a map to the parameters are learned.

z_{k+1} = z_k - alpha grad L(phi_k), phi_k = g(z_k), with
g(z)_i = z_i sigma(a_i) + mu_i on block i, and (a_i, mu_i) = d_i(e_1(z_1), ...).

Source: Zhang, Li, Giannakis, arXiv 2312.13486, "Learnable loss geometries" and
"Learning inverse mirror map". Differs: sigma is twice a sigmoid, so that it is bounded
as they ask, and 1 at first; heads of convolutions learn, which those released do not.
"""

from dataclasses import dataclass

import torch

from baselines.learners.contract import LEARNERS, Learner
from metricopt.errors import require_choice, require_counts
from metricopt.fewshot.meta_learner import Named
from metricopt.geometry.block_iaf import BlockIAF
from metricopt.geometry.mirror_map import MirrorMap
from metricopt.geometry.parameters import parameter_shapes
from metricopt.geometry.partition import consecutive_blocks
from metricopt.geometry.scale import Scale


@LEARNERS.register("mirror-descent")
@dataclass(frozen=True, kw_only=True)
class MirrorDescent(Learner):
    """Mirror descent: d and the weights of blockIAF.

    Attributes:
        scale: sigma, a positive function; see `metricopt.geometry.scale`.
        tensors: consecutive tensors of a block, as in `consecutive_blocks`; four are a
            convolution with its batch norm.
    """

    scale: Scale = "2-sigmoid"
    tensors: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("scale", self.scale, Scale)
        require_counts("mirror-descent", vars(self), "tensors")

    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return the map; its weights are drawn, but it is the identity."""
        blocks = consecutive_blocks(parameter_shapes(phi), self.tensors)
        return BlockIAF(phi, blocks, scale=self.scale, generator=generator)
