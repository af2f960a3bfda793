"""The verbs and options of the command line.

The parser imports no verb and no experiment, so that help and errors come at once.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn, TypeAlias

from benchmarks.cli import catalogue
from benchmarks.cli.usage import UsageError, at_least_one, check_name
from benchmarks.runs.tiers import TIERS

PROGRAM = "./reproduce.sh"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing the usage and exiting."""
        raise UsageError(f"{message}; {self.prog} --help shows how")


Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What verbs are added to."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command.

    The attribute `module` is the module in `benchmarks.cli.verbs` that runs the verb.

    Raises:
        UsageError: if the command is wrong.
    """
    parser, verbs = make_parser()
    if arguments and not arguments[0].startswith("-"):
        check_name("verb", arguments[0], verbs, f"{PROGRAM} --help lists all")
    return parser.parse_args(arguments)


def make_parser() -> tuple[Parser, list[str]]:
    """Return the parser and the names of all verbs."""
    parser = Parser(prog=PROGRAM, description="Reproduce tables and figures.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    experiments = catalogue.experiments()
    for name, about in experiments.items():
        _add_run(_add(verbs, name, about, "run"), [name])
    everything = _add(verbs, "all", "run all experiments, one after the other", "run")
    _add_run(everything, [])
    _add_report_verbs(verbs, list(experiments))
    _add_data_verbs(verbs)
    _add_other_verbs(verbs)
    return parser, list(verbs.choices)


def _add(verbs: Verbs, name: str, about: str, module: str) -> Parser:
    """Add a verb with the options that all verbs have."""
    # argparse formats help texts with the % operator.
    about = about.replace("%", "%%")
    verb: Parser = verbs.add_parser(name, help=about, description=about)
    verb.add_argument(
        "--data", metavar="DIR", help="folder of the data sets (or METRICOPT_DATA)"
    )
    verb.add_argument(
        "--store", metavar="DIR", help="folder of the run records (or METRICOPT_STORE)"
    )
    verb.set_defaults(module=module)
    return verb


def _add_run(verb: Parser, experiments: list[str]) -> None:
    _add_tier(verb)
    _add_replicates(verb)
    _add_results(verb)
    verb.add_argument("--offline", action="store_true", help="never download")
    verb.add_argument(
        "--fresh",
        action="store_true",
        help="repeat finished runs; an old record stays until the new one is there",
    )
    verb.add_argument(
        "--workers",
        type=partial(at_least_one, "--workers"),
        metavar="N",
        help="number of processes (default: one per core)",
    )
    verb.set_defaults(experiments=experiments)


def _add_report_verbs(verbs: Verbs, experiments: list[str]) -> None:
    report = _add(verbs, "report", "write reports from the finished runs", "report")
    _add_experiments(report, experiments)
    _add_replicates(report)
    _add_results(report)
    about = "rebuild the committed reports from their records and compare"
    verify = _add(verbs, "verify", about, "verify")
    _add_experiments(verify, experiments)
    verify.add_argument(
        "--results", metavar="DIR", help="check the reports in this folder instead"
    )
    plan = _add(verbs, "plan", "show runs, hours and disk space in advance", "plan")
    _add_experiments(plan, experiments)
    _add_replicates(plan)
    about = "train the networks of experiments again"
    pretrain = _add(verbs, "pretrain", about, "pretrain")
    _add_experiments(pretrain, experiments, count="+")
    _add_replicates(pretrain)
    pretrain.add_argument(
        "--release",
        action="store_true",
        help="write the networks to results/weights, which git tracks",
    )


def _add_data_verbs(verbs: Verbs) -> None:
    data = _add(verbs, "data", "fetch, verify or show data sets", "data")
    actions = ("fetch", "verify", "status")
    data.add_argument(
        "action",
        type=partial(_name, "action", lambda: actions),
        metavar="ACTION",
        help=", ".join(actions),
    )
    data.add_argument(
        "names",
        nargs="*",
        type=partial(_name, "data set", catalogue.data_sets),
        metavar="DATASET",
        help="default: all",
    )
    cache = _add(verbs, "cache", "show or clear the cache", "cache")
    cache.add_argument(
        "action",
        nargs="?",
        default="show",
        type=partial(_name, "action", lambda: ("show", "clear")),
        metavar="ACTION",
        help="show (default) or clear",
    )
    cache.add_argument(
        "kinds",
        nargs="*",
        metavar="KIND",
        help="what to clear (default: everything but runs)",
    )


def _add_other_verbs(verbs: Verbs) -> None:
    about = "list experiments, data sets, methods, losses and metrics"
    listing = _add(verbs, "list", about, "listing")
    listing.add_argument(
        "kind", nargs="?", metavar="KIND", help="such as methods, losses or metrics"
    )
    listing.add_argument("--names", metavar="KIND", help=argparse.SUPPRESS)
    _add(verbs, "doctor", "show what this machine has and what is missing", "doctor")
    _add(verbs, "test", "run the tests", "testing")


def _add_experiments(verb: Parser, known: list[str], count: str = "*") -> None:
    verb.add_argument(
        "experiments",
        nargs=count,
        type=partial(_name, "experiment", lambda: known),
        metavar="EXPERIMENT",
        help="default: all" if count == "*" else None,
    )
    _add_tier(verb)


def _add_tier(verb: Parser) -> None:
    verb.add_argument(
        "--tier",
        type=partial(_name, "tier", lambda: TIERS),
        metavar="TIER",
        help=", ".join(TIERS),
    )


def _add_replicates(verb: Parser) -> None:
    verb.add_argument(
        "--replicates",
        type=partial(at_least_one, "--replicates"),
        metavar="N",
        help="number of replicates instead of the tier's own",
    )


def _add_results(verb: Parser) -> None:
    places = verb.add_mutually_exclusive_group()
    places.add_argument(
        "--results", metavar="DIR", help="folder of the report (default: results/own)"
    )
    places.add_argument(
        "--commit-results",
        action="store_true",
        help="write the report to results, which git tracks",
    )


def _name(kind: str, known: Callable[[], Sequence[str]], text: str) -> str:
    return check_name(kind, text, known())
