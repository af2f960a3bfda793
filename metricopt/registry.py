"""Registries: a decorator adds a unit, a package walk finds it, a name looks it up."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from metricopt.errors import ConfigError, unknown_name

T = TypeVar("T")


class Registry(Generic[T]):
    """Named units of one kind, in the order of their names.

    The first look-up imports every module of the packages, whose decorators register
    their units. Importing a registry imports no unit.

    Args:
        kind: what the units are, for error messages ("metric", "method", ...).
        packages: dotted names of the packages that hold the units, sub-packages
            included.
    """

    def __init__(self, kind: str, *packages: str) -> None:
        self.kind = kind
        self._packages = packages
        self._filled = False
        self._units: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds a unit; ConfigError if its name is taken."""

        def add(unit: T) -> T:
            if name in self._units:
                raise ConfigError(f"a {self.kind} named {name!r} is registered already")
            self._units[name] = unit
            return unit

        return add

    def get(self, name: str) -> T:
        """Return the unit of a name; ConfigError, with near names, if there is none."""
        self._fill()
        if name not in self._units:
            raise unknown_name(self.kind, name, self)
        return self._units[name]

    def __iter__(self) -> Iterator[str]:
        self._fill()
        return iter(sorted(self._units))

    def in_order(self) -> tuple[str, ...]:
        """Return the names in the order of registration, module by module."""
        self._fill()
        return tuple(self._units)

    def __contains__(self, name: str) -> bool:
        self._fill()
        return name in self._units

    def _fill(self) -> None:
        if self._filled:
            return
        for name in self._packages:
            package = importlib.import_module(name)
            for module in pkgutil.walk_packages(package.__path__, f"{name}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
        self._filled = True
