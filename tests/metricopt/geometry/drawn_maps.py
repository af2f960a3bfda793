"""One map of each kind over small parameters, as built or with weights drawn."""

import torch

from metricopt.geometry import (
    BlockDiagonal,
    BlockIAF,
    Dense,
    Diagonal,
    ExactPotential,
    Identity,
    Kronecker,
    KroneckerProduct,
)

SHAPES = {"w_1.weight": (4, 2, 3, 1), "b": (4,), "w.2": (3, 4), "c": (3,), "s": ()}
BLOCKS = (("w_1.weight", "b"), ("c", "s"), ("w.2",))
SIZE = 44


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def released(shapes):
    """As the authors', but wide: the ReLUs of single units are easily dead."""
    wide = Kronecker((1, 1), heads="all-modes-zero")
    return BlockIAF(shapes, BLOCKS, scale="exp", conditioner=wide, generator=seeded(1))


MAPS = {
    "identity": Identity,
    "diagonal": Diagonal,
    "block-diagonal": BlockDiagonal,
    "shared block-diagonal": lambda shapes: BlockDiagonal(
        shapes, [("w_1.weight", "b"), ("w.2", "c"), ("s",)]
    ),
    "kronecker product": KroneckerProduct,
    "released blockIAF": released,
    "blockIAF, dense": lambda shapes: BlockIAF(
        shapes, [tuple(SHAPES)[:4], tuple(SHAPES)[4:]], generator=seeded()
    ),
    "blockIAF, kronecker": lambda shapes: BlockIAF(
        shapes, BLOCKS, conditioner=Kronecker((1, 1)), generator=seeded(1)
    ),
    "blockIAF, clamped": lambda shapes: BlockIAF(
        shapes, BLOCKS, scale="clamped-exp", conditioner=Dense(6, 5), generator=seeded()
    ),
    "blockIAF, one block": lambda shapes: BlockIAF(shapes, [tuple(SHAPES)]),
    "exact potential": lambda shapes: ExactPotential(shapes, 5, generator=seeded()),
}


def built(name, dtype=torch.float64):
    """A map as it is before it is trained."""
    return MAPS[name](SHAPES).to(dtype)


def drawn(name, *, dtype=torch.float64, by=0.3, seed=1):
    """A map whose weights have moved at random."""
    found, generator = built(name), seeded(seed)
    with torch.no_grad():
        for weight in found.parameters():
            noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            weight += by * noise
    return found.to(dtype)


def point(seed=2, dtype=torch.float64, size=SIZE):
    return torch.randn(size, generator=seeded(seed), dtype=torch.float64).to(dtype)
