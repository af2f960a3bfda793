"""MT-net without its mask: a start and a matrix over the outputs of each layer.

A layer computes T (W x + b), where W and b descend on the task and T is meta-learned.
So T W steps by T T^T times the gradient.

Source: Lee and Choi, ICML 2018. Differs: no random mask of what descends, so it is
their T-net. The equation y = T W x does not say how the mask is learned, nor what T
does to biases and norms: here a bias has the matrix of its layer, and the scale and
shift of a norm share one.
"""

from dataclasses import dataclass
from itertools import groupby

import torch

from baselines.learners.contract import LEARNERS, Learner
from metricopt.fewshot.meta_learner import Named
from metricopt.geometry.block_diagonal import BlockDiagonal
from metricopt.geometry.mirror_map import MirrorMap


@LEARNERS.register("block-diagonal")
@dataclass(frozen=True, kw_only=True)
class TNet(Learner):
    """Gradient descent preconditioned by T T^T: d and n^2 for n outputs of a layer."""

    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return a matrix for every module with parameters."""
        modules = groupby(phi, key=lambda name: name.rpartition(".")[0])
        return BlockDiagonal(phi, [tuple(names) for _, names in modules])
