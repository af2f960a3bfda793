"""Mirror descent with blockIAF as its authors released it.

The scale is exp, which is not bounded. Heads of two or more modes stay zero, so the
weights of convolutions and of the classifier have a constant log-scale and shift.

Source: zhangyilang/MetaMirrorDescent, src/meta_mirror_descent.py. Differs: see
`metricopt.geometry.released_block_iaf`.
"""

from dataclasses import dataclass

import torch

from baselines.learners.contract import LEARNERS, Learner
from metricopt.fewshot.meta_learner import Named
from metricopt.geometry.block_iaf import released_block_iaf
from metricopt.geometry.mirror_map import MirrorMap


@LEARNERS.register("mirror-descent-released")
@dataclass(frozen=True, kw_only=True)
class ReleasedMirrorDescent(Learner):
    """Mirror descent, four tensors a block: d and the weights of blockIAF."""

    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return the map; its weights are drawn, but it is the identity."""
        return released_block_iaf(phi, generator=generator)
