"""Shards: the runs of an experiment, dealt out to machines that never talk.

Whoever asks for a shard gets the same runs, since nothing but the plan decides.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from benchmarks.execution.runner import in_groups
from benchmarks.runs.spec import RunSpec


def shards_of(
    specs: Sequence[RunSpec], count: int, seconds: Mapping[str, float]
) -> list[list[RunSpec]]:
    """Return the runs of every shard; each run is in exactly one.

    Runs stand in a line, in which those that share a pipeline are neighbours, and the
    line is cut where the planned seconds are equal. No shard is planned to take longer
    than an equal part and the longest run together.

    Args:
        specs: all runs, in any order.
        count: number of shards.
        seconds: planned seconds by digest. A run that is not planned counts as the
            mean of the others.
    """
    line = [spec for group in in_groups(specs) for spec in group]
    usual = fmean(seconds.values()) if seconds else 1.0
    lengths = [seconds.get(spec.digest, usual) for spec in line]
    shards: list[list[RunSpec]] = [[] for _ in range(count)]
    whole, begun = sum(lengths), 0.0
    for spec, length in zip(line, lengths, strict=True):
        # The middle of a run decides, so that a cut within it is rounded.
        place = (begun + length / 2) / whole if whole else 0.0
        shards[min(int(place * count), count - 1)].append(spec)
        begun += length
    return shards
