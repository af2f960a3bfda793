"""The options of the command line, and the one sentence that a wrong command gets.

The parser imports no verb and no experiment, so that help and errors come at once.
"""

import argparse
import difflib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from benchmarks.cli import catalogue
from benchmarks.runs.paths import TIERS

PROGRAM = "./reproduce.sh"


class UsageError(Exception):
    """The command line is wrong; the message is one sentence for the user.

    It is no `MetricOptError`, because importing metricopt takes seconds.
    """


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing the usage and exiting."""
        raise UsageError(f"{message}; {self.prog} --help shows how")


def check_name(kind: str, name: str, known: Sequence[str], hint: str = "") -> str:
    """Return a name if it is known.

    Args:
        kind: what has this name, such as `experiment`.
        name: what the user typed.
        known: all valid names.
        hint: where to find the names; without it the message lists them.

    Raises:
        UsageError: if the name is unknown; the message suggests the nearest name.
    """
    if name in known:
        return name
    near = difflib.get_close_matches(name.lower(), known, n=1)
    suggestion = f"did you mean {near[0]!r}? " if near else ""
    names = hint or f"known: {', '.join(known)}"
    raise UsageError(f"unknown {kind} {name!r}; {suggestion}{names}")


Settings: TypeAlias = dict[str, Any]
"""Settings of an argument, as argparse takes them."""
Option: TypeAlias = dict[str, Settings]
"""Arguments by name; several exclude each other."""


def _one_of(kind: str, known: Callable[[], Sequence[str]], **more: Any) -> Settings:
    """Return the settings of an argument that is one of some names."""
    checked = {"type": lambda text: check_name(kind, text, known())}
    return {**checked, "metavar": kind.upper().replace(" ", ""), **more}


def _folder(about: str) -> Settings:
    return {"metavar": "DIR", "help": about}


def _flag(about: str) -> Settings:
    return {"action": "store_true", "help": about}


def _number(option: str, about: str, **more: Any) -> Option:
    def checked(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(
                f"{option} must be a whole number of at least 1, got {text!r}"
            )
        return int(text)

    return {option: {"type": checked, "metavar": "N", "help": about, **more}}


def _part(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise UsageError(
        f"--shard must be a part and the number of parts, such as 2/8, got {text!r}"
    )


DATA = {"--data": _folder("folder of the data sets (or METRICOPT_DATA)")}
STORE = {"--store": _folder("folder of the run records (or METRICOPT_STORE)")}
TIER = {"--tier": _one_of("tier", lambda: TIERS, help=", ".join(TIERS))}
REPLICATES = _number("--replicates", "number of replicates instead of the tier's own")
WORKERS = _number("--workers", "number of processes (default: one per core)")
SPREAD = {
    **WORKERS,
    "--cluster": {
        "metavar": "ADDRESS",
        "help": "make the runs on a cluster of Ray: auto, or host:port",
    },
}
AT_ONCE = _number("--workers", "networks trained at once (default: 1)", default=1)
SHARD = {
    "--shard": {
        "type": _part,
        "metavar": "I/N",
        "help": "only part I of N equal ones; report --merge puts them together",
    }
}
MERGED = {
    "--merge": {
        "nargs": "+",
        "metavar": "DIR",
        "default": [],
        "help": "first take over the records of these run stores",
    }
}
OFFLINE = {"--offline": _flag("never download")}
FRESH = {
    "--fresh": _flag(
        "repeat finished runs; an old record stays until the new one is there"
    )
}
RELEASE = {
    "--release": _flag("write the networks to results/weights, which git tracks")
}
MISSING = {"--missing": _flag("only networks that are not released")}
IDLE = {"--idle": _flag("use only what other processes leave (Linux)")}
TRIALS = {
    "--trials": _flag(
        "instead the short trainings by which settings of learned-losses or few-shot "
        "are chosen; a line each in results/weights"
    )
}
RESULTS = {
    "--results": _folder("folder of the report (default: results/own)"),
    "--commit-results": _flag("write the report to results, which git tracks"),
}
CHECKED = {"--results": _folder("check the reports in this folder or bundle instead")}
BUNDLED = {"--results": _folder("bundle a report of this folder instead")}
DATA_ACTIONS, CACHE_ACTIONS = ("fetch", "verify", "status"), ("show", "clear")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command.

    The attributes `module` and `function` name what runs it in `benchmarks.cli.verbs`.

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

    def add(name: str, about: str, run: str, *options: Option, **fixed: Any) -> None:
        # argparse formats help texts with the % operator.
        about = about.replace("%", "%%")
        verb = verbs.add_parser(name, help=about, description=about)
        for option in (DATA, STORE, *options):
            place = verb.add_mutually_exclusive_group() if len(option) > 1 else verb
            for flag, settings in option.items():
                place.add_argument(flag, **settings)
        module, _, function = run.partition(".")
        verb.set_defaults(module=module, function=function or "run", **fixed)

    experiments = catalogue.experiments()
    runs = {name: (about, [name]) for name, about in experiments.items()}
    runs["all"] = "run all experiments, one after the other", []
    for name, (about, wanted) in runs.items():
        options = (TIER, REPLICATES, RESULTS, OFFLINE, FRESH, SPREAD, SHARD)
        add(name, about, "experiments", *options, experiments=wanted)
    _add_others(add, list(experiments))
    return parser, list(verbs.choices)


def _add_others(add: Callable[..., None], experiments: Sequence[str]) -> None:
    """Add the verbs that are no experiments."""
    named = _one_of("experiment", lambda: experiments)
    _add_reports(add, named)
    some = {"experiments": {**named, "nargs": "*", "help": "default: all"}}
    about = "show runs, hours and disk space in advance"
    about_workers = "also predict the time with so many workers"
    with_workers = _number("--workers", about_workers)
    add("plan", about, "plan", some, TIER, REPLICATES, with_workers)
    about = "train the networks of experiments again"
    wanted = {"experiments": {**named, "nargs": "+"}}
    options = TIER, REPLICATES, RELEASE, MISSING, IDLE, TRIALS, AT_ONCE
    add("pretrain", about, "pretrain", wanted, *options)
    about = "fetch, verify or show data sets"
    actions = _one_of("action", lambda: DATA_ACTIONS, help=", ".join(DATA_ACTIONS))
    sets = _one_of("data set", catalogue.data_sets, nargs="*", help="default: all")
    add("data", about, "data", {"action": actions}, {"names": sets})
    actions = _one_of("action", lambda: CACHE_ACTIONS, nargs="?", default="show")
    actions["help"] = "show (default) or clear"
    about = "what to clear (default: everything but runs)"
    kinds = {"nargs": "*", "metavar": "KIND", "help": about}
    add(
        "cache",
        "show or clear the cache",
        "cache",
        {"action": actions},
        {"kinds": kinds},
    )
    about = "list experiments, data sets, methods, losses and metrics"
    kind = {"nargs": "?", "metavar": "KIND"}
    kind["help"] = "such as methods, losses or metrics"
    names = {"--names": {"metavar": "KIND", "help": argparse.SUPPRESS}}
    add("list", about, "listing", {"kind": kind}, names)
    add("doctor", "show what this machine has and what is missing", "doctor")
    add("test", "run the tests", "testing")


def _add_reports(add: Callable[..., None], named: Settings) -> None:
    """Add the verbs that make something of finished runs.

    Args:
        add: adds a verb.
        named: settings of an argument that is the name of an experiment.
    """
    some = {"experiments": {**named, "nargs": "*", "help": "default: all"}}
    about = "write reports from the finished runs"
    options = TIER, REPLICATES, RESULTS, MERGED
    add("report", about, "experiments.report", some, *options)
    about = "rebuild the committed reports from their records and compare"
    add("verify", about, "verify", some, TIER, CHECKED)
    about = "write the reports of an experiment into an archive that verify accepts"
    out = {"--out": {"metavar": "FILE", "help": "default: build/EXPERIMENT.zip"}}
    add("bundle", about, "bundle", {"experiment": named}, TIER, BUNDLED, out)
    about = "build pages of all records, to look at without a network"
    own = {"--own": _flag("also show your own runs, beside the committed ones")}
    out = {"--out": _folder("folder of the pages (default: build/site)")}
    add("site", about, "website", own, out)
