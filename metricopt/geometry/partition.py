"""The block partition: which parameters a map takes together, and in which order."""

from collections import Counter
from collections.abc import Sequence

from metricopt.errors import ConfigError, require_counts
from metricopt.geometry.parameters import ParameterShapes, vector_shapes

Blocks = tuple[tuple[str, ...], ...]
"""Names of the tensors of every block; the first block is the input layer's."""


def consecutive_blocks(shapes: ParameterShapes, tensors: int = 4) -> Blocks:
    """Return blocks of consecutive tensors, the last one with what remains.

    Four are a convolution and its batch norm: weight, bias, scale, shift.

    Args:
        shapes: the parameters of a task.
        tensors: how many a block has, at least 1.

    Raises:
        ConfigError: if the number is below 1.

    Source: released code of Zhang et al., arXiv 2312.13486. Differs: nothing.
    """
    require_counts("a block", {"tensors": tensors}, "tensors")
    names = shapes.names
    return tuple(names[i : i + tensors] for i in range(0, len(names), tensors))


def layer_blocks(shapes: ParameterShapes) -> Blocks:
    """Return a block for every layer: a weight and the vectors behind it.

    A tensor of two or more dimensions begins a block. A convolution, its bias and the
    batch norm behind it are one, as in the released code of Zhang et al.
    """
    blocks: list[list[str]] = []
    for name, shape in shapes.by_name.items():
        if len(shape) > 1 or not blocks:
            blocks.append([])
        blocks[-1].append(name)
    return tuple(map(tuple, blocks))


def vector_partition(
    places: Sequence[Sequence[slice]],
) -> tuple[ParameterShapes, Blocks]:
    """Return shapes and blocks of a vector phi [d], of the places of every block.

    `Adapter.blocks` are such places: those of one layer are one block.

    Args:
        places: slices of phi with start and stop, block by block, the first block
            first.

    Raises:
        ConfigError: if the slices do not hold every coordinate exactly once.
    """
    given = [place for block in places for place in block]
    order = sorted(given, key=lambda place: place.start)
    ends = [0, *(place.stop for place in order)]
    if not given or [place.start for place in order] != ends[:-1]:
        found = ", ".join(f"{place.start} to {place.stop}" for place in order)
        raise ConfigError(
            "the places of the blocks must hold every coordinate of phi exactly once, "
            f"without a gap from 0 on; got {found or 'none'}"
        )
    names = {place.start: str(number) for number, place in enumerate(order)}
    shapes = vector_shapes([place.stop - place.start for place in order])
    return shapes, tuple(
        tuple(names[place.start] for place in block) for block in places
    )


def checked_blocks(shapes: ParameterShapes, blocks: Sequence[Sequence[str]]) -> Blocks:
    """Return a partition if every parameter is in it exactly once.

    Raises:
        ConfigError: if a block is empty or no sequence of names, if a name is unknown,
            or if a parameter is in no block or in two.
    """
    if isinstance(blocks, str) or any(isinstance(block, str) for block in blocks):
        raise ConfigError("blocks must be a sequence of sequences of parameter names")
    partition = tuple(tuple(block) for block in blocks)
    if not all(partition):
        empty = partition.index(())
        raise ConfigError(f"every block needs a parameter; block {empty} has none")
    counts = Counter(name for block in partition for name in block)
    unknown = [name for name in counts if name not in shapes.by_name]
    if unknown:
        known = ", ".join(shapes.names)
        raise ConfigError(f"blocks name {unknown[0]!r}; the parameters are {known}")
    wrong = [name for name in shapes.names if counts[name] != 1]
    if wrong:
        found = "no block" if not counts[wrong[0]] else f"{counts[wrong[0]]} places"
        raise ConfigError(
            f"blocks must hold every parameter exactly once; {wrong[0]!r} is in {found}"
        )
    return partition
