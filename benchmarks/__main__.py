"""The command line: `python -m benchmarks VERB`, or `./reproduce.sh VERB`."""

import argparse
import os
import sys
from collections.abc import Sequence

from benchmarks import verbs
from metricopt.errors import MetricOptError

DATA_ACTIONS = ("fetch", "verify", "status")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code; errors are one sentence on stderr."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.data:
        os.environ["METRICOPT_DATA"] = options.data
    if options.store:
        os.environ["METRICOPT_STORE"] = options.store
    try:
        return int(options.run(options))
    except MetricOptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "stopped; finished runs are kept, the same command goes on", file=sys.stderr
        )
        return 130


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs."""
    parser = argparse.ArgumentParser(
        prog="./reproduce.sh", description="Reproduce tables and figures."
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--data", help="data root (or METRICOPT_DATA)")
    common.add_argument("--store", help="run store (or METRICOPT_STORE)")
    common.add_argument("--results", default="results", help="where reports go")
    add = parser.add_subparsers(dest="verb", required=True, metavar="VERB").add_parser
    for name, about in verbs.experiments().items():
        _add_experiment(add(name, help=about, parents=[common]), name)
    every = add("all", help="all experiments, one after the other", parents=[common])
    _add_experiment(every, "all")
    for name, run, about in (
        ("report", verbs.report, "tables and figures from the finished runs"),
        ("verify", verbs.verify, "rebuild committed reports from their records"),
        ("plan", verbs.plan, "runs, hours and disk of an experiment"),
        ("pretrain", verbs.pretrain, "train the networks of an experiment anew"),
    ):
        verb = add(name, help=about, parents=[common])
        count = "+" if run is verbs.pretrain else "*"
        verb.add_argument("experiments", nargs=count, metavar="EXPERIMENT")
        _add_size(verb)
        if run is verbs.pretrain:
            about = "write them to results/weights"
            verb.add_argument("--release", action="store_true", help=about)
        verb.set_defaults(run=run)
    for name, run, about in (
        ("list", verbs.list_units, "experiments, data sets, methods, losses, metrics"),
        ("doctor", verbs.doctor, "what this machine has, and what is missing"),
        ("test", verbs.test, "the tests"),
    ):
        verb = add(name, help=about, parents=[common])
        verb.set_defaults(run=run)
    data = add("data", help="fetch, verify or show data sets", parents=[common])
    data.add_argument("action", choices=DATA_ACTIONS)
    data.add_argument("names", nargs="*", metavar="DATASET")
    data.set_defaults(run=verbs.data)
    return parser


def _add_experiment(parser: argparse.ArgumentParser, name: str) -> None:
    _add_size(parser)
    parser.add_argument("--offline", action="store_true", help="never download")
    parser.add_argument("--fresh", action="store_true", help="repeat finished runs")
    parser.add_argument("--workers", type=int, help="processes (default: one a core)")
    parser.set_defaults(run=verbs.run, experiments=[name])


def _add_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tier", help="paper, local or smoke")
    parser.add_argument("--replicates", type=int, help="instead of the tier's own")


if __name__ == "__main__":
    sys.exit(main())
