"""Registries: a decorator adds a unit, a package walk finds it, a name looks it up."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Generic, TypeVar

from metricopt.errors import ConfigError

T = TypeVar("T")


class Registry(Generic[T]):
    """Named units of one kind, in the order of their names.

    Args:
        kind: what the units are, for error messages ("metric", "method", ...).
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._units: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds the decorated unit under `name`.

        Raises:
            ConfigError: if the name is taken by another unit.
        """

        def add(unit: T) -> T:
            if name in self._units:
                raise ConfigError(f"a {self.kind} named {name!r} is registered already")
            self._units[name] = unit
            return unit

        return add

    def get(self, name: str) -> T:
        """Return the unit called `name`.

        Raises:
            ConfigError: if there is none; the message lists the known names.
        """
        if name not in self._units:
            known = ", ".join(self) or "none"
            raise ConfigError(f"unknown {self.kind} {name!r}; known: {known}")
        return self._units[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._units))

    def __contains__(self, name: str) -> bool:
        return name in self._units


def import_units(package: ModuleType) -> None:
    """Import every module of a package, so that its decorators register their units."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
