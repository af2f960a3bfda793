"""The verbs and options of the command line.

The parser imports no verb and no experiment, so that help and errors come at once.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn, TypeAlias

from benchmarks.cli import catalogue
from benchmarks.cli.usage import UsageError, at_least_one, check_name
from benchmarks.runs.paths import TIERS

PROGRAM = "./reproduce.sh"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing the usage and exiting."""
        raise UsageError(f"{message}; {self.prog} --help shows how")


Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What verbs are added to."""


Option: TypeAlias = tuple[str, dict[str, Any]]
"""Name of an argument and its settings, as argparse takes them."""


def _names(
    kind: str, known: Callable[[], Sequence[str]], metavar: str = ""
) -> dict[str, Any]:
    """Return the settings of an argument that is one of some names."""

    def checked(text: str) -> str:
        return check_name(kind, text, known())

    return {"type": checked, "metavar": metavar or kind.upper()}


def _folder(about: str) -> dict[str, Any]:
    return {"metavar": "DIR", "help": about}


def _number(option: str, about: str) -> Option:
    checked = partial(at_least_one, option)
    return option, {"type": checked, "metavar": "N", "help": about}


DATA: Option = ("--data", _folder("folder of the data sets (or METRICOPT_DATA)"))
STORE: Option = ("--store", _folder("folder of the run records (or METRICOPT_STORE)"))
TIER: Option = ("--tier", _names("tier", lambda: TIERS) | {"help": ", ".join(TIERS)})
REPLICATES = _number("--replicates", "number of replicates instead of the tier's own")
WORKERS = _number("--workers", "number of processes (default: one per core)")
OFFLINE: Option = ("--offline", {"action": "store_true", "help": "never download"})
FRESH: Option = (
    "--fresh",
    {
        "action": "store_true",
        "help": "repeat finished runs; an old record stays until the new one is there",
    },
)
RELEASE: Option = (
    "--release",
    {
        "action": "store_true",
        "help": "write the networks to results/weights, which git tracks",
    },
)
MISSING: Option = (
    "--missing",
    {"action": "store_true", "help": "only networks that are not released"},
)
IDLE: Option = (
    "--idle",
    {"action": "store_true", "help": "use only what other processes leave (Linux)"},
)
TRIALS: Option = (
    "--trials",
    {
        "action": "store_true",
        "help": "the short trainings by which settings are chosen, instead",
    },
)
KIND: Option = (
    "kind",
    {"nargs": "?", "metavar": "KIND", "help": "such as methods, losses or metrics"},
)
NAMES: Option = ("--names", {"metavar": "KIND", "help": argparse.SUPPRESS})


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
    runs = {name: (about, [name]) for name, about in experiments.items()}
    runs["all"] = "run all experiments, one after the other", []
    for name, (about, wanted) in runs.items():
        verb = _add(verbs, name, about, "run", TIER, REPLICATES)
        _add_results(verb)
        _add_options(verb, OFFLINE, FRESH, WORKERS)
        verb.set_defaults(experiments=wanted)
    _add_report_verbs(verbs, _names("experiment", lambda: list(experiments)))
    _add_data_verbs(verbs)
    about = "list experiments, data sets, methods, losses and metrics"
    _add(verbs, "list", about, "listing", KIND, NAMES)
    _add(verbs, "doctor", "show what this machine has and what is missing", "doctor")
    _add(verbs, "test", "run the tests", "testing")
    return parser, list(verbs.choices)


def _add(verbs: Verbs, name: str, about: str, module: str, *options: Option) -> Parser:
    """Add a verb with the options that all verbs have."""
    # argparse formats help texts with the % operator.
    about = about.replace("%", "%%")
    verb: Parser = verbs.add_parser(name, help=about, description=about)
    _add_options(verb, DATA, STORE, *options)
    verb.set_defaults(module=module)
    return verb


def _add_options(verb: Parser, *options: Option) -> None:
    for name, settings in options:
        verb.add_argument(name, **settings)


def _add_report_verbs(verbs: Verbs, known: dict[str, Any]) -> None:
    some: Option = ("experiments", known | {"nargs": "*", "help": "default: all"})
    about = "write reports from the finished runs"
    _add_results(_add(verbs, "report", about, "report", some, TIER, REPLICATES))
    about = "rebuild the committed reports from their records and compare"
    own: Option = ("--results", _folder("check the reports in this folder instead"))
    _add(verbs, "verify", about, "verify", some, TIER, own)
    about = "show runs, hours and disk space in advance"
    _add(verbs, "plan", about, "plan", some, TIER, REPLICATES)
    about = "train the networks of experiments again"
    named: Option = ("experiments", known | {"nargs": "+"})
    options = TIER, REPLICATES, RELEASE, MISSING, IDLE, TRIALS
    _add(verbs, "pretrain", about, "pretrain", named, *options)


def _add_data_verbs(verbs: Verbs) -> None:
    actions = ("fetch", "verify", "status")
    action = _names("action", lambda: actions) | {"help": ", ".join(actions)}
    names = _names("data set", catalogue.data_sets, metavar="DATASET")
    names |= {"nargs": "*", "help": "default: all"}
    about = "fetch, verify or show data sets"
    _add(verbs, "data", about, "data", ("action", action), ("names", names))
    action = _names("action", lambda: ("show", "clear"))
    action |= {"nargs": "?", "default": "show", "help": "show (default) or clear"}
    kinds = {"nargs": "*", "metavar": "KIND"}
    kinds["help"] = "what to clear (default: everything but runs)"
    about = "show or clear the cache"
    _add(verbs, "cache", about, "cache", ("action", action), ("kinds", kinds))


def _add_results(verb: Parser) -> None:
    places = verb.add_mutually_exclusive_group()
    places.add_argument(
        "--results", **_folder("folder of the report (default: results/own)")
    )
    places.add_argument(
        "--commit-results",
        action="store_true",
        help="write the report to results, which git tracks",
    )
