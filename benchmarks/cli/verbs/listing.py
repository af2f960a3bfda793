"""The verb `list`: everything that has a name."""

from argparse import Namespace

from tabulate import tabulate

from benchmarks.cli import catalogue
from benchmarks.cli.usage import check_name

METHODS = "methods"
ALIGNED = ("left", "left", "right", "right", "right", "left")
COSTS = (
    "queries, steps, s: medians over the committed runs of tier local. They include "
    "meta-training, unless its value function was in the cache, and the training of "
    "the network. A dot: no run is committed."
)


def run(options: Namespace) -> int:
    """Print all units, or those of one kind.

    With `--names` only names, one per line, for scripts.
    """
    kinds = {kind.plural: kind for kind in catalogue.kinds()}
    if options.kind is not None:
        name = check_name("kind", options.kind, list(kinds))
        _print_kind(name, kinds[name])
        return 0
    if options.names is not None:
        name = check_name("kind", options.names, list(kinds))
        print("\n".join(catalogue.units(kinds[name])))
        return 0
    print("experiments")
    experiments = catalogue.units(kinds.pop("experiments"))
    width = max(map(len, experiments))
    for name, about in experiments.items():
        print(f"  {name.ljust(width)}  {about}")
    width = max(map(len, kinds))
    for plural, kind in kinds.items():
        print(f"{plural.ljust(width)}  {', '.join(catalogue.units(kind))}")
    return 0


def _print_kind(name: str, kind: catalogue.Kind) -> None:
    if name == METHODS:
        # Not above: it reads records, and the list of all units is to be instant.
        from benchmarks.cli.method_table import HEADERS, method_table

        print(tabulate(method_table(), HEADERS, colalign=ALIGNED))
        print(COSTS)
        return
    units = catalogue.units(kind)
    width = max(map(len, units))
    for unit, about in units.items():
        print(f"{unit.ljust(width)}  {about}")
