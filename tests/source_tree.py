"""The source tree as the architecture tests see it: files, modules and imports."""

import ast
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("metricopt", "baselines", "benchmarks")


def where(path, line=None):
    place = str(path.relative_to(ROOT))
    return place if line is None else f"{place}:{line}"


class Import(NamedTuple):
    """An edge between two modules of this repository.

    Attributes:
        source, target: dotted names.
        line: where the source imports the target.
        names: what it takes from there; empty for the module itself.
    """

    source: str
    target: str
    line: int
    names: tuple[str, ...] = ()


@cache
def modules():
    """Path of every module of the three packages, by dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path
    return found


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes(path):
    """Every node of a file, the outer ones first."""
    return tuple(ast.walk(tree(path)))


@cache
def imports(*, typing=False):
    """Every import of one module of the packages by another, in functions too.

    Args:
        typing: whether imports for type checkers alone count.
    """
    return [
        edge
        for name, path in modules().items()
        for node in (ast.walk if typing else _runtime_nodes)(tree(path))
        for edge in _edges(name, path, node)
    ]


def definitions(path):
    """Names that the body of a module defines, not those it imports."""
    found = set()
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            parts = getattr(target, "elts", [target])
            found |= {part.id for part in parts if isinstance(part, ast.Name)}
    return found


def is_unit(name):
    """Whether a module registers something; units of one registry stay apart."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "register"
        for node in nodes(modules()[name])
    )


def functions(path):
    """Every function of a file, methods and inner functions included."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in nodes(path) if isinstance(node, kinds)]


def methods(path):
    """The functions of a file that get `self` or `cls`."""
    return {
        node
        for owner in nodes(path)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef)
        and "staticmethod" not in {ast.unparse(d) for d in node.decorator_list}
    }


def length(function):
    """Lines of a function from its `def` on, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    return lines - (docstring.end_lineno - docstring.lineno + 1)


def python_files():
    return [*modules().values(), *sorted((ROOT / "tests").rglob("*.py"))]


@cache
def repository_files():
    """Every file that git holds or would take; skips the test outside a checkout."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others"]
    command.append("--exclude-standard")
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git checkout")
    paths = (ROOT / name for name in sorted(set(listed.stdout.split("\0"))) if name)
    return [path for path in paths if path.is_file()]


def _runtime_nodes(node):
    """Walk a tree, without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _runtime_nodes(child)


def _edges(name, path, node):
    if isinstance(node, ast.Import):
        targets = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(name, path, node)
        return _from_edges(name, base, node)
    else:
        return []
    known = dict.fromkeys(target for target in targets if target in modules())
    return [Import(name, target, node.lineno) for target in known]


def _from_edges(name, base, node):
    taken = [alias.name for alias in node.names]
    whole = [f"{base}.{part}" for part in taken if f"{base}.{part}" in modules()]
    edges = [Import(name, target, node.lineno) for target in whole]
    names = tuple(part for part in taken if f"{base}.{part}" not in modules())
    if names and base in modules():
        edges.append(Import(name, base, node.lineno, names))
    return edges


def _absolute(name, path, node):
    """Resolve `from .module import name` as Python does."""
    if not node.level:
        return node.module
    parts = name.split(".")
    keep = len(parts) - node.level + (path.name == "__init__.py")
    return ".".join([*parts[:keep], *([node.module] if node.module else [])])
