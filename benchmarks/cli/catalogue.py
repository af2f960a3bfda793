"""The names of all registered units, read from the source files without importing them.

Importing the units takes seconds, because they import torch. The catalogue reads the
source instead. It finds every registry, `X = Registry("kind", "package", ...)`, and in
its packages, and in modules that installed packages name in entry points of the same
groups, every registration, `X.register("name")`.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from benchmarks.runs.paths import ROOT

PACKAGES = ("benchmarks", "baselines", "metricopt")
UNNAMED = ("row", "added column")
"""Kinds whose units are made and named while they are imported; nothing lists them."""
REGISTRY = re.compile(r"^(\w+)(?::[^=\n]+)? = Registry\(([^)]*)\)", re.MULTILINE)
TEXT = re.compile(r'"([^"]*)"')
METHODS = {
    "method": "chooses phi",
    "rival": "chooses phi",
    "network method": "trains the network",
    "kind of arm": "moves outputs",
}
"""What methods do, by the kind of their registry."""
MADE_IN = ("baselines/post_hoc", "metricopt/on_outputs")
"""Folders of what arms are made of, in files of their names."""
SOURCE = re.compile(r"Source: (.+?)(?:(?<!Alg)(?<!Sec)(?<!Fig)(?<!Eq)\.(?:\s|$)|;)")
"""Where a method comes from, in the docstring of its module."""


@dataclass(frozen=True)
class Kind:
    """One registry as its source describes it.

    Attributes:
        name: kind of the units, such as `data set`.
        module: dotted name of the module that makes the registry.
        variable: name of the registry there.
        packages: dotted names of the packages of its units.
    """

    name: str
    module: str
    variable: str
    packages: tuple[str, ...]

    @property
    def plural(self) -> str:
        """The name for more than one unit."""
        noun, of, rest = self.name.partition(" of ")
        if noun.endswith("y"):
            return f"{noun[:-1]}ies{of}{rest}"
        return f"{noun}{'es' if noun.endswith('s') else 's'}{of}{rest}"


def kinds() -> list[Kind]:
    """Return the registries whose units the source names, sorted by name."""
    found = []
    for path, text in _sources(PACKAGES):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for variable, arguments in REGISTRY.findall(text):
            name, *packages = TEXT.findall(arguments)
            if name not in UNNAMED:
                found.append(Kind(name, module, variable, tuple(packages)))
    return sorted(found, key=lambda kind: kind.name)


def method_kinds() -> list[Kind]:
    """Return the registries of methods."""
    return [kind for kind in kinds() if kind.name in METHODS]


def units(kind: Kind) -> dict[str, str]:
    """Return the names of all units of a kind, each with a line of description.

    The description is the first line of the docstring of the unit's module. The names
    are in alphabetical order.
    """
    return _lines(_docstrings(kind))


def usable(kind: Kind) -> dict[str, str]:
    """Return `units` without those of modules that cannot be imported."""
    return _lines(_docstrings(kind, broken(kind)))


def _lines(docstrings: Mapping[str, str]) -> dict[str, str]:
    return {name: docstrings[name].partition("\n")[0] for name in sorted(docstrings)}


@cache
def broken(kind: Kind) -> dict[str, str]:
    """Return the modules of other packages that cannot be imported, and why.

    Only importing them shows it, which imports torch, too. So nothing is imported where
    no package adds units to the kind.
    """
    if not _named_by_others(kind.packages):
        return {}
    from metricopt.registry import broken_points

    errors = broken_points(kind.packages)
    return {point.module: str(error) for point, error in errors.items()}


def described(kind: Kind) -> dict[str, str]:
    """Return a text about every unit, by name.

    It is the docstring of the module of a unit, or of what an arm is made of; empty
    without any.
    """
    found = _docstrings(kind)
    return {name: _made_of(kind, name) or found[name] for name in sorted(found)}


def _made_of(kind: Kind, name: str) -> str:
    for folder in MADE_IN if kind.name == "kind of arm" else ():
        file = ROOT / folder / f"{name.replace('-', '_')}.py"
        if file.exists():
            return _docstring(file.read_text(encoding="utf-8"))
    return ""


def source(text: str) -> str:
    """Return the paper that a docstring names as its source; empty if it names none."""
    found = SOURCE.search(" ".join(text.split()))
    return found[1] if found else ""


def experiments() -> dict[str, str]:
    """Return the names of all experiments, each with a line of description."""
    return units({kind.name: kind for kind in kinds()}["experiment"])


def data_sets() -> list[str]:
    """Return the names of all data sets, kind by kind."""
    return [name for kind in kinds() if "data set" in kind.name for name in units(kind)]


def _docstrings(kind: Kind, without: Collection[str] = ()) -> dict[str, str]:
    """Return the docstring of its module for the name of every unit."""
    call = re.compile(rf'^@?{kind.variable}\.register\(\s*"([^"]+)"', re.MULTILINE)
    return {
        name: _docstring(text)
        for text in _texts(kind.packages, without)
        for name in call.findall(text)
    }


@cache
def _docstring(text: str) -> str:
    with suppress(SyntaxError):  # the source may be another package's
        return ast.get_docstring(ast.parse(text)) or ""
    return ""


def _texts(packages: tuple[str, ...], without: Collection[str]) -> Iterator[str]:
    """Return the sources that may register units, those of other packages last."""
    yield from (text for _, text in _sources(packages))
    for module in sorted(_named_by_others(packages) - {*without}):
        if (path := _source_file(module)) is not None:
            yield path.read_text(encoding="utf-8", errors="replace")


def _named_by_others(packages: tuple[str, ...]) -> set[str]:
    """Return the modules that installed packages name in their entry points."""
    return {point.module for group in packages for point in entry_points(group=group)}


def _source_file(module: str) -> Path | None:
    """Return the file of a module, without importing its package; None without any."""
    first, *rest = module.split(".")
    spec = find_spec(first)
    for part in rest:
        places = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(part, places or [])
    return Path(spec.origin) if spec and spec.origin else None


def _sources(packages: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    for package in packages:
        for path in sorted(ROOT.joinpath(*package.split(".")).rglob("*.py")):
            yield path, path.read_text(encoding="utf-8")
