"""What to run: one frozen specification per run, and its identity."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from metricopt.errors import ConfigError

FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN.

    Raises:
        ConfigError: if the value holds what JSON cannot, non-finite numbers included.
    """
    try:
        return json.dumps(
            value,
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
            ensure_ascii=False,
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(f"expected values that JSON can hold: {error}") from error


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
        settings: every resolved setting, JSON-able; copied through its JSON text.

    Raises:
        ConfigError: if a name is empty or no folder name, `replicate` is negative, or
            `settings` is not JSON-able.
    """

    experiment: str
    tier: str
    block: str
    row: str
    column: str
    replicate: int
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

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
        object.__setattr__(self, "settings", json.loads(canonical(self.settings)))

    @property
    def digest(self) -> str:
        """Identity of the run: sha256 of its canonical JSON, 64 hex digits."""
        return hashlib.sha256(canonical(asdict(self)).encode()).hexdigest()

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
