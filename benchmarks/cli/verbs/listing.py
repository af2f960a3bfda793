"""The verb `list`: everything that has a name."""

from argparse import Namespace

from benchmarks.cli import catalogue
from benchmarks.cli.usage import check_name


def run(options: Namespace) -> int:
    """Print all units, or the names of one kind, one per line, for scripts."""
    kinds = {kind.plural: kind for kind in catalogue.kinds()}
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
