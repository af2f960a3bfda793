"""Registries: a decorator adds a unit, a package walk finds it, a name looks it up.

An installed package adds units by entry points: in the group of the folder in which its
file would stand here, it names the module that registers them, as in

    [project.entry-points."metricopt.methods"]
    line-search = "their_package.line_search"
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from metricopt.errors import ConfigError, said, unknown_name

T = TypeVar("T")


class Registry(Generic[T]):
    """Named units of one kind, in the order of their names.

    The first look-up imports every module of the packages, then the modules that others
    name in their entry points; decorators register the units of both. Importing a
    registry imports no unit.

    Args:
        kind: what the units are, for error messages ("metric", "method", ...).
        packages: dotted names of the packages that hold the units, sub-packages
            included, and of the groups of entry points.
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
        for point in _named_by_others(self._packages):
            _import(point)
        self._filled = True


def _named_by_others(groups: tuple[str, ...]) -> list[EntryPoint]:
    """Return the entry points of installed packages in some groups, in fixed order."""
    found = [point for group in groups for point in entry_points(group=group)]
    return sorted(found, key=lambda point: (point.name, point.value))


def _import(point: EntryPoint) -> None:
    """Import the module of an entry point.

    Raises:
        ConfigError: if that fails, for whatever reason; the message names the package.
    """
    try:
        importlib.import_module(point.module)
    except Exception as error:  # the module of somebody else may raise anything
        package = point.dist
        assert package is not None
        raise ConfigError(
            f"the package {package.name} {package.version} adds {point.name!r} to "
            f"{point.group}, but its module {point.module} cannot be imported "
            f"({said(error)}): repair or uninstall it"
        ) from error
