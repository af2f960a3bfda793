"""An experiment: a table's layout, and the specs that fill it at every tier."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report.layout import TableLayout
from benchmarks.runs.paths import TIERS
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError
from metricopt.registry import Registry


def _nothing(tier: str) -> Mapping[str, Sequence[str]]:
    return {}


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper, or of ours.

    Attributes:
        name: as in `./reproduce.sh NAME`.
        layout: what the table looks like, by tier.
        specs: the runs of a tier, given the number of replicates (None: the tier's own)
            and whether downloads are forbidden; see `resolve_variant`.
        left_out: labels of rows that it lacks somewhere, by the reasons in words.
        default_tier: the tier run when none is named.
        takes_days: whether its networks are trained for days, so that only who names it
            runs it.
    """

    name: str
    layout: Callable[[str], TableLayout]
    specs: Callable[[str, int | None, bool | None], list[RunSpec]]
    left_out: Callable[[str], Mapping[str, Sequence[str]]] = _nothing
    default_tier: str = "local"
    takes_days: bool = False


EXPERIMENTS: Registry[Experiment] = Registry("experiment", "benchmarks.tables")


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    Raises:
        ConfigError: if there is none; the message lists the known names.
    """
    return EXPERIMENTS.get(name)


def experiment_names() -> list[str]:
    """Return the names of all experiments."""
    return list(EXPERIMENTS)


def check_tier(tier: str, replicates: int | None) -> None:
    """Check what the command line asks for.

    Raises:
        ConfigError: if the tier is unknown or there is less than one replicate.
    """
    if tier not in TIERS:
        raise ConfigError(f"unknown tier {tier!r}; known: {', '.join(TIERS)}")
    if replicates is not None and replicates < 1:
        raise ConfigError(f"replicates must be at least 1, got {replicates}")
