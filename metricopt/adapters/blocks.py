"""Which parameters of phi belong together: those that modulate one layer."""

from itertools import pairwise

QUARTERS = 4

PhiBlocks = tuple[tuple[slice, ...], ...]
"""Places in phi of every block, in the order of the network; each place in one."""


def quarters(size: int) -> PhiBlocks:
    """Return four consecutive blocks of phi, alike in size; d blocks if d is less.

    For a phi in which no parameter belongs to one layer more than to another.
    """
    count = min(QUARTERS, size)
    ends = [size * part // count for part in range(count + 1)] if size else []
    return tuple((slice(*pair),) for pair in pairwise(ends))
