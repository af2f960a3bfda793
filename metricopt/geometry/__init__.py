"""Learned loss geometries: mirror maps for learning a new task in a few steps.

A geometry is a map g from dual parameters z to the parameters phi of a task.
`mirror_descent` follows the gradient in phi, and steps in z. With g and z_0 learned
over many tasks, a few steps on a few examples are enough for a new one.

What a user needs is offered here; it is imported on first access.

Source: Zhang, Li, Giannakis, "Meta-learning with versatile loss geometries",
arXiv 2312.13486.
"""

from typing import TYPE_CHECKING

from metricopt.late_names import late_names

if TYPE_CHECKING:
    from metricopt.geometry.block_diagonal import BlockDiagonal
    from metricopt.geometry.block_iaf import BlockIAF, released_block_iaf
    from metricopt.geometry.conditioners import Dense, Kronecker
    from metricopt.geometry.diagonal import Diagonal
    from metricopt.geometry.dual_iteration import DualPath, mirror_descent
    from metricopt.geometry.exact_potential import ExactPotential
    from metricopt.geometry.health import step_cosines, tangent_cosine
    from metricopt.geometry.identity import Identity
    from metricopt.geometry.kronecker_product import KroneckerProduct
    from metricopt.geometry.mirror_map import MirrorMap
    from metricopt.geometry.mirror_optimizer import MirrorOptimizer
    from metricopt.geometry.parameters import ParameterShapes, vector_shapes
    from metricopt.geometry.partition import (
        consecutive_blocks,
        layer_blocks,
        vector_partition,
    )

__all__ = [
    "BlockDiagonal",
    "BlockIAF",
    "Dense",
    "Diagonal",
    "DualPath",
    "ExactPotential",
    "Identity",
    "Kronecker",
    "KroneckerProduct",
    "MirrorMap",
    "MirrorOptimizer",
    "ParameterShapes",
    "consecutive_blocks",
    "layer_blocks",
    "mirror_descent",
    "released_block_iaf",
    "step_cosines",
    "tangent_cosine",
    "vector_partition",
    "vector_shapes",
]

__getattr__ = late_names(
    __name__,
    {
        "BlockDiagonal": ".block_diagonal",
        "BlockIAF": ".block_iaf",
        "Dense": ".conditioners",
        "Diagonal": ".diagonal",
        "DualPath": ".dual_iteration",
        "ExactPotential": ".exact_potential",
        "Identity": ".identity",
        "Kronecker": ".conditioners",
        "KroneckerProduct": ".kronecker_product",
        "MirrorMap": ".mirror_map",
        "MirrorOptimizer": ".mirror_optimizer",
        "ParameterShapes": ".parameters",
        "consecutive_blocks": ".partition",
        "layer_blocks": ".partition",
        "mirror_descent": ".dual_iteration",
        "released_block_iaf": ".block_iaf",
        "step_cosines": ".health",
        "tangent_cosine": ".health",
        "vector_partition": ".partition",
        "vector_shapes": ".parameters",
    },
)
