"""What the runs of all protocols have in common: an arm, its place, and the spec."""

from dataclasses import dataclass
from typing import Any

from benchmarks.records import RunSpec


@dataclass(frozen=True)
class Arm:
    """How a row is run; becomes part of a spec's settings.

    Attributes:
        kind: see `benchmarks.arms`.
        name: of the registered method.
        settings: of the method, JSON-able.
        queries: budget of one result.
        meta_tests: repetitions.
        schedule: changes of a network method to the backbone's training schedule.
        from_theta: whether a network method starts from the trained theta.
        diagnose: whether a value function is checked on held-out trajectories.
    """

    kind: str
    name: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    queries: int = 0
    meta_tests: int = 1
    schedule: tuple[tuple[str, Any], ...] = ()
    from_theta: bool = False
    diagnose: bool = False


def method(name: str, **settings: Any) -> tuple[str, str, tuple[tuple[str, Any], ...]]:
    """Return kind, name and settings of an arm that chooses phi."""
    return "method", name, tuple(settings.items())


@dataclass(frozen=True)
class Place:
    """Where a run stands in its table; see `RunSpec`."""

    experiment: str
    tier: str
    block: str
    row: str
    metric: str
    replicate: int


def resolve(
    place: Place, column: str, bench: dict[str, Any], arm: Arm, *, steps: int
) -> RunSpec:
    """Return the fully resolved spec of one run.

    Args:
        place: where it stands.
        column: name of the column.
        bench: the settings its bench is made of.
        arm: how it is run.
        steps: of fine-tuning, T.
    """
    return RunSpec(
        experiment=place.experiment,
        tier=place.tier,
        block=place.block,
        row=place.row,
        column=column,
        replicate=place.replicate,
        settings={
            **bench,
            "metric": place.metric,
            "arm": {
                "kind": arm.kind,
                "name": arm.name,
                "settings": dict(arm.settings),
                "schedule": dict(arm.schedule),
                "from_theta": arm.from_theta,
            },
            "budget": {"queries": arm.queries, "gradient_steps": steps},
            "meta_tests": arm.meta_tests,
            "diagnose": arm.diagnose,
        },
    )
