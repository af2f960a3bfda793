"""The names of all registered units, read from the source files without importing them.

Importing the units takes seconds, because they import torch. The catalogue parses the
source instead. It finds every registry, `X = Registry("kind", "package", ...)`, and in
its packages every registration, `X.register("name")`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.runs.paths import ROOT

PACKAGES = ("benchmarks", "baselines", "metricopt")


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
        return f"{noun}{'es' if noun.endswith('s') else 's'}{of}{rest}"


def kinds() -> list[Kind]:
    """Return all registries of the three packages, sorted by name."""
    found = [kind for package in PACKAGES for kind in _registries(package)]
    return sorted(found, key=lambda kind: kind.name)


def units(kind: Kind) -> dict[str, str]:
    """Return the names of all units of a kind, each with a line of description.

    The description is the first line of the docstring of the unit's module. The names
    are in alphabetical order.
    """
    return dict(
        sorted(pair for package in kind.packages for pair in _units(kind, package))
    )


def about(kind: Kind, name: str) -> str:
    """Return the docstring of the module that registers a unit; empty without any."""
    call = f'{kind.variable}.register("{name}")'
    for package in kind.packages:
        for _, text in _sources(package):
            if call in text:
                return ast.get_docstring(_parsed(text)) or ""
    return ""


def find_kind(name: str) -> Kind:
    """Return the kind called `name`, such as `experiment`.

    Raises:
        KeyError: if there is no registry of this kind.
    """
    return {kind.name: kind for kind in kinds()}[name]


def experiments() -> dict[str, str]:
    """Return the names of all experiments, each with a line of description."""
    return units(find_kind("experiment"))


def data_sets() -> list[str]:
    """Return the names of all data sets, kind by kind."""
    return [name for kind in kinds() if "data set" in kind.name for name in units(kind)]


def _registries(package: str) -> Iterator[Kind]:
    for path, text in _sources(package):
        if "Registry(" not in text:
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in _parsed(text).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            arguments = _strings(node.value, "Registry")
            if arguments:
                yield Kind(arguments[0], module, _target(node), arguments[1:])


def _units(kind: Kind, package: str) -> Iterator[tuple[str, str]]:
    for _, text in _sources(package):
        yield from _registered(text, f"{kind.variable}.register")


@cache
def _registered(text: str, call: str) -> tuple[tuple[str, str], ...]:
    """Return the names that a source registers, each with its line of description."""
    if f"{call}(" not in text:
        return ()
    tree = _parsed(text)
    about = (ast.get_docstring(tree) or "").partition("\n")[0]
    return tuple(
        (name, about) for node in ast.walk(tree) for name in _strings(node, call)
    )


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _sources(package: str) -> Iterator[tuple[Path, str]]:
    folder = ROOT.joinpath(*package.split("."))
    for path in sorted(folder.rglob("*.py")):
        yield path, path.read_text(encoding="utf-8")


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    """Return the name that a statement assigns to."""
    return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _strings(node: ast.AST | None, function: str) -> tuple[str, ...]:
    """Return the text arguments of a call of a function, or none for other nodes."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != function:
        return ()
    values = [each.value for each in node.args if isinstance(each, ast.Constant)]
    return tuple(value for value in values if isinstance(value, str))
