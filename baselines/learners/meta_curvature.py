"""Meta-Curvature: a start and a matrix for every mode of each weight are learned.

phi_{k+1} = phi_k - alpha (M_o x M_i x M_f) grad L(phi_k): M_o acts on the outputs of a
convolution, M_i on its inputs and M_f on the positions of its kernel. All are the
identity at first.

Source: Park and Oliva, NeurIPS 2019. The equation does not say whether phi_0 is
trained before the matrices, nor what becomes of biases and norms. Here phi_0 is trained
from random weights, together with the matrices, and every bias, scale and shift has a
matrix of its own.
"""

from dataclasses import dataclass

import torch

from baselines.learners.contract import LEARNERS, Learner
from metricopt.fewshot.meta_learner import Named
from metricopt.geometry.kronecker_product import KroneckerProduct
from metricopt.geometry.mirror_map import MirrorMap


@LEARNERS.register("meta-curvature")
@dataclass(frozen=True, kw_only=True)
class MetaCurvature(Learner):
    """Gradient descent with a Kronecker product: d and n^2 for n numbers of a mode."""

    def geometry(self, phi: Named, generator: torch.Generator) -> MirrorMap:
        """Return a matrix for every mode of every tensor."""
        return KroneckerProduct(phi)
