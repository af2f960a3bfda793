"""What to run: one frozen specification per run, its identity, and its metrics."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.runs.codec import digest_of, encode, later
from metricopt.errors import ConfigError
from metricopt.metrics.base import METRICS, Metric
from metricopt.registry import Registry, find

FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Settings = Mapping[str, Any]
"""JSON-able settings of a registered unit, which that unit alone decodes."""


@dataclass(frozen=True)
class Unit:
    """A registered unit with its settings.

    Attributes:
        name: as registered.
        settings: what `benchmarks.runs.codec.encode` made of its typed settings.
    """

    name: str
    settings: Settings = field(default_factory=dict, hash=False)

    @property
    def label(self) -> str:
        """The name, with the settings if there are any: a key of metric values."""
        if not self.settings:
            return self.name
        texts = (f"{name}={value}" for name, value in sorted(self.settings.items()))
        return f"{self.name}({', '.join(texts)})"


@dataclass(frozen=True)
class Arm:
    """How a row is run.

    Attributes:
        kind: name of a registered arm, see `benchmarks.arms.contract`.
        name: name of the method or network method; empty if it runs none.
        settings: settings of that method, or of the arm itself.
        schedule: changes of a network method to the training of its pipeline.
        from_theta: whether a network method starts from the trained theta.
        source: another pipeline, on which a method learns its value function, or whose
            loss it follows; None for the pipeline of the run.
        learning: queries that are made there; 0 for the budget of the run.
    """

    kind: str
    name: str = ""
    settings: Settings = field(default_factory=dict, hash=False)
    schedule: Settings = field(default_factory=dict, hash=False)
    from_theta: bool = False
    source: Unit | None = later(None)  # noqa: RUF009
    learning: int = later(0)


@dataclass(frozen=True)
class Spending:
    """What one result may cost; see `metricopt.methods.result.Budget`."""

    queries: int = 0
    gradient_steps: int = 0


@dataclass(frozen=True)
class RunSpec:
    """One run, resolved: two specs with the same digest are the same run.

    Attributes:
        experiment: name of the table or figure, such as `table3`.
        tier: `paper`, `local` or `smoke`.
        block: part of the table, such as the sampling (`balanced`).
        row: name of the method arm.
        column: data set and metric, such as `a9a/f1`.
        replicate: repetition index, from 0.
        pipeline: the problem with its network.
        metric: what the run works towards.
        also: further metrics the result is judged by.
        arm: how it is run.
        budget: what one result may cost.
        meta_tests: repetitions R within the run.
        diagnose: whether a value function is checked on held-out trajectories.
        value_functions: how many are trained, by chance alone different; each has its
            own meta-tests.
        pictured: whether the record keeps a picture of what the result changed.

    Raises:
        ConfigError: if a name is empty or no folder name, `replicate` is negative,
            there is no value function, or a setting is not JSON-able.
    """

    experiment: str
    tier: str
    block: str
    row: str
    column: str
    replicate: int
    pipeline: Unit
    metric: Unit
    arm: Arm
    budget: Spending = Spending()
    also: tuple[Unit, ...] = ()
    meta_tests: int = 1
    diagnose: bool = False
    value_functions: int = later(1)
    pictured: bool = later(False)

    def __post_init__(self) -> None:
        for name in ("experiment", "tier"):
            if not FOLDER_NAME.fullmatch(getattr(self, name)):
                raise ConfigError(
                    f"{name} must be letters, digits, '.', '_' or '-', "
                    f"got {getattr(self, name)!r}"
                )
        if not (self.block and self.row and self.column):
            raise ConfigError(f"block, row and column must not be empty, got {self}")
        if isinstance(self.replicate, bool) or self.replicate < 0:
            raise ConfigError(f"replicate must be 0 or more, got {self.replicate!r}")
        if self.value_functions < 1:
            raise ConfigError(
                f"value_functions must be 1 or more, got {self.value_functions!r}"
            )
        _ = self.digest  # fails where JSON cannot hold a setting

    @property
    def metrics(self) -> tuple[Unit, ...]:
        """All metrics the result is judged by, the run's own first."""
        return (self.metric, *self.also)

    @cached_property
    def digest(self) -> str:
        """Identity of the run: sha256 of its canonical JSON, 64 hex digits."""
        return digest_of(self.content)

    @property
    def cell(self) -> tuple[str, str, str, str, str, int]:
        """Place in the tables: everything but the settings; also the sort key."""
        return (
            self.experiment,
            self.tier,
            self.block,
            self.row,
            self.column,
            self.replicate,
        )

    @property
    def folder(self) -> Path:
        """Folder in the run store, `<experiment>/<tier>/<readable>-<hash8>`."""
        readable = f"{self.block}-{self.row}-{self.column}-r{self.replicate}"
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", readable)[:100].lstrip(".-")
        return Path(self.experiment, self.tier, f"{readable}-{self.digest[:8]}")

    @cached_property
    def content(self) -> dict[str, Any]:
        """Plain JSON values, which all callers share: none may change them."""
        return self.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content: dict[str, Any] = encode(self)
        return content


def check_unique(specs: Iterable[RunSpec]) -> None:
    """Check that no two specs fill the same place of the same table.

    Raises:
        ConfigError: if two do, equal specs included; the message names the place.
    """
    seen: set[tuple[str, str, str, str, str, int]] = set()
    for spec in specs:
        if spec.cell in seen:
            place = "/".join(str(part) for part in spec.cell)
            raise ConfigError(f"expected one spec per run, got two for {place}")
        seen.add(spec.cell)


SUITE_METRICS: Registry[type[Metric]] = Registry("suite metric", "benchmarks.problems")
"""Metrics that make sense for one problem of the suite only."""


def metric_of(unit: Unit) -> Metric:
    """Return the metric that a unit names, with its settings.

    Raises:
        ConfigError: if neither the library nor the suite has it, or it has no such
            setting; the message lists the known names.
    """
    kind = find(unit.name, METRICS, SUITE_METRICS)
    try:
        made: Metric = kind(**unit.settings)
        return made
    except TypeError as error:
        raise ConfigError(f"metric {unit.name!r}: {error}") from error
