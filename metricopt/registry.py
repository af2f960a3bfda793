"""Registries: a decorator adds a unit, a package walk finds it, a name looks it up.

An installed package adds units by entry points: in the group of the folder in which its
file would stand here, it names the module that registers them, as in

    [project.entry-points."metricopt.methods"]
    line-search = "their_package.line_search"

A module of theirs that cannot be imported is left out, with a warning: it must not stop
those who never asked for its units.
"""

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from typing import Any, Generic, TypeVar

from metricopt.errors import ConfigError, described, said, unknown_name

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
        base: class that all units are subclasses of; None if they are something else.
    """

    def __init__(self, kind: str, *packages: str, base: type | None = None) -> None:
        self.kind = kind
        self._packages, self._base = packages, base
        self._filled = False
        self._units: dict[str, T] = {}
        self._broken: dict[EntryPoint, ConfigError] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds a unit.

        ConfigError is raised if its name is taken, or it is no subclass of the base.
        """

        def add(unit: T) -> T:
            base = self._base
            if base and not (isinstance(unit, type) and issubclass(unit, base)):
                raise ConfigError(
                    f"a registered {self.kind} must be a subclass of {base.__name__}, "
                    f"got {described(unit)}"
                )
            if name in self._units:
                raise ConfigError(f"a {self.kind} named {name!r} is registered already")
            self._units[name] = unit
            return unit

        return add

    def get(self, name: str) -> T:
        """Return the unit of a name; ConfigError, with near names, if there is none."""
        unit: T = find(name, self)
        return unit

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
        self._broken = broken_points(self._packages)
        self._filled = True
        for error in self._broken.values():
            # Python shows a text once, however many registries come across it.
            warnings.warn(f"left out: {error}", UserWarning, stacklevel=2)


def find(
    name: str,
    *registries: Registry[Any],
    also: Iterable[str] = (),
    others: Iterable[str] = (),
) -> Any:
    """Return the unit of a name, from the first of some registries that has it.

    Args:
        name: name of the unit.
        *registries: where to look it up; the first says what it is.
        also: other names that the message lists.
        others: names that are too many to be listed, but may be near.

    Raises:
        ConfigError: if no registry has it. The message lists the known names, or says
            why the module that an installed package names so cannot be imported.
    """
    for registry in registries:
        if name in registry:
            return registry._units[name]
    broken = {p: error for each in registries for p, error in each._broken.items()}
    for point, error in broken.items():
        if point.name == name:
            raise error
    known = sorted({*chain.from_iterable(registries)})
    unknown = unknown_name(registries[0].kind, name, [*known, *also], others=others)
    # A module may register its units by other names than that of its entry point.
    raise ConfigError("; ".join(map(str, (unknown, *broken.values()))))


def broken_points(groups: Iterable[str]) -> dict[EntryPoint, ConfigError]:
    """Import the modules that installed packages name in some groups.

    Returns:
        The entry points whose modules cannot be imported, in fixed order, each with an
        error that names the package and the reason.
    """
    found = [point for group in groups for point in entry_points(group=group)]
    errors: dict[EntryPoint, ConfigError] = {}
    for point in sorted(found, key=lambda point: (point.name, point.value)):
        try:
            importlib.import_module(point.module)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - others' code, or script
            errors[point] = _broken(point, error)
    return errors


def _broken(point: EntryPoint, error: BaseException) -> ConfigError:
    package = point.dist
    assert package is not None
    found = ConfigError(
        f"the package {package.name} {package.version} adds {point.name!r} to "
        f"{point.group}, but its module {point.module} cannot be imported "
        f"({said(error)}): repair or uninstall it"
    )
    found.__cause__ = error
    return found
