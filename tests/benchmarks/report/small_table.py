"""Table 3, few and short runs: `python -m tests.benchmarks.report.small_table`.

Everything else is the real thing: command line, runner, store, report. Workers and
their manager import this module: what takes seconds to import waits until it is used.
"""

import sys
from dataclasses import replace

from benchmarks.__main__ import main

ROWS = ("cross-entropy", "loss-only", "random-search", "metricopt-q50")
PLACE = ("balanced", "digit-8/f1")


def short(spec):
    """Return a spec with little pre-training."""
    parts = dict(spec.pipeline.settings)
    parts["backbone"] = parts["backbone"] | {"epochs": 2}
    return replace(spec, pipeline=replace(spec.pipeline, settings=parts))


def small_experiment(name):
    """Return an experiment with the quick rows of its smoke tier alone."""
    from benchmarks.tables.registry import find_experiment

    experiment = find_experiment(name)

    def specs(tier, replicates, offline):
        found = experiment.specs(tier, replicates, offline)
        return [
            short(spec)
            for spec in found
            if spec.row in ROWS and (spec.block, spec.column) == PLACE
        ]

    return replace(experiment, specs=specs)


if __name__ == "__main__":
    from benchmarks.tables.registry import EXPERIMENTS

    EXPERIMENTS._units["table3"] = small_experiment("table3")
    sys.exit(main())
