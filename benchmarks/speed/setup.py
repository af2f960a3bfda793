"""How long `mismatch` takes to set up: `python -m benchmarks.speed.setup`.

Every turn of a worker needs the features before the adapter. They are encoded anew for
every turn, or encoded once and read from the cache by the others, both side by side.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence

import torch

from benchmarks.execution.runner import in_groups
from benchmarks.experiments import mismatch
from benchmarks.problems.adapted import AdaptedPipeline
from benchmarks.problems.contract import make_pipeline
from benchmarks.runs.spec import RunSpec
from benchmarks.speed.measurement import Measurement, as_table
from metricopt.tasks.encoding import encoded

SPLITS = ("train", "observe", "test")
SHARE = 1 / 3


def anew(pipeline: AdaptedPipeline) -> None:
    """Encode all splits."""
    for name in SPLITS:
        encoded(pipeline.adapter, pipeline.splits.named(name))


def shared(pipeline: AdaptedPipeline) -> None:
    """Encode all splits, or read them where another turn has encoded them."""
    for name in SPLITS:
        pipeline.encoded(name)


def seconds(
    groups: Sequence[Sequence[RunSpec]], setup: Callable[[AdaptedPipeline], None]
) -> float:
    """Return the seconds that the set-up of all groups takes, networks excluded."""
    total = 0.0
    for group in groups:
        pipeline = make_pipeline(group[0].pipeline, group[0].replicate)
        assert isinstance(pipeline, AdaptedPipeline)
        _ = pipeline.adapter  # the network is there, or is trained now
        started = time.perf_counter()
        setup(pipeline)
        total += time.perf_counter() - started
    return total


def main() -> int:
    """Measure both ways with one thread, print a table and return 0."""
    torch.set_num_threads(1)
    groups = in_groups(mismatch.specs("local", 1, True))
    before = seconds(groups, anew)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["METRICOPT_CACHE"] = folder
        after = seconds(groups, shared)
    ratio = after / before
    met = ratio <= SHARE
    lines = [
        Measurement(
            f"features of {len(groups)} turns, encoded anew", f"{before:.0f} s"
        ),
        Measurement("  shared through an empty cache", f"{after:.0f} s"),
        Measurement("  shared over anew", f"{ratio:.2f}", f"<= {SHARE:.2f}", met),
    ]
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
