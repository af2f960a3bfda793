"""Table 3, few and short runs: `python -m tests.benchmarks.small_table`.

Everything else is the real thing: command line, runner, store, report.
"""

import sys
from dataclasses import replace

from benchmarks import verbs
from benchmarks.__main__ import main
from benchmarks.experiment import find_experiment

ROWS = ("cross-entropy", "loss-only", "random-search", "metricopt-q50")
PLACE = ("balanced", "digit-8/f1")


def short(spec):
    """Return a spec with little pre-training."""
    settings = dict(spec.settings)
    settings["backbone"] = settings["backbone"] | {"epochs": 2}
    return replace(spec, settings=settings)


def small_experiment(name):
    """Return an experiment with the quick rows of its smoke tier alone."""
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
    verbs.find_experiment = small_experiment
    sys.exit(main())
