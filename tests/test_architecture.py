"""The rules of CONTRIBUTING.md that a machine can check."""

import ast
import re
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter

from tests.source_tree import (
    PACKAGES,
    ROOT,
    functions,
    imports,
    is_unit,
    length,
    methods,
    modules,
    python_files,
    repository_files,
    tree,
)

# The library from the bottom up: a file imports only from lines above its own. A star
# stands for the files of a folder that have no line of their own: the units of a
# registry, which never import each other.
LIST = re.search(
    r"^```text\n(errors .*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S
)
ORDER = [line.split()[0] for line in LIST[1].splitlines()] if LIST else []

FORBIDDEN_IMPORTS = {
    "metricopt": {"baselines", "benchmarks"},
    "baselines": {"benchmarks"},
    "benchmarks": set(),
}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_ARGUMENTS = 400, 40, 6
MAX_FILE_BYTES = 5 * 1024 * 1024
# Written in pieces, so that this file does not hold what it looks for.
MACHINE_PATHS = re.compile("(?<![\\w.])/(?:work|home|root)" + "/|\\.\\./" + "shared")
UNFINISHED = re.compile("TO" + "DO|FIX" + "ME|XX" + "X")


def where(path, line=None):
    place = str(path.relative_to(ROOT))
    return place if line is None else f"{place}:{line}"


def rank(name):
    """Place of a module of the library in ORDER, None if it has none."""
    short = name.removeprefix("metricopt.")
    for line in (short, f"{short.rpartition('.')[0]}.*"):
        if line in ORDER:
            return ORDER.index(line)
    return None


def test_packages_import_downwards_only():
    wrong = [
        edge
        for edge in imports()
        if edge.target.split(".")[0] in FORBIDDEN_IMPORTS[edge.source.split(".")[0]]
    ]
    assert not wrong
    assert {edge.source.split(".")[0] for edge in imports()} == set(PACKAGES)


def test_the_order_names_every_module_of_the_library():
    library = [name for name in modules() if name.split(".")[0] == "metricopt"]
    assert not [name for name in library if rank(name) is None]
    places = {f"metricopt.{line}" for line in ORDER if not line.endswith("*")}
    assert not places - {"metricopt.metricopt"} - set(modules())


def test_the_library_imports_from_above_in_the_order_only():
    wrong = [
        edge
        for edge in imports()
        if edge.source.startswith("metricopt")
        and edge.target.startswith("metricopt")
        and edge.source != edge.target
        and rank(edge.source) <= rank(edge.target)
    ]
    assert not wrong


def test_units_of_one_registry_do_not_import_each_other():
    wrong = [
        edge
        for edge in imports()
        if edge.source.rpartition(".")[0] == edge.target.rpartition(".")[0]
        and is_unit(edge.source)
        and is_unit(edge.target)
    ]
    assert not wrong


def test_no_module_imports_itself_through_others():
    graph = {name: set() for name in modules()}
    for edge in imports():
        graph[edge.source].add(edge.target)
    cycle = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
    assert not cycle


def test_module_names_say_what_is_inside():
    last = {name: name.split(".")[-1] for name in modules()}
    assert not [name for name, part in last.items() if part in VAGUE_NAMES]
    library = sys.stdlib_module_names - {"__main__"}
    assert not [name for name, part in last.items() if part in library]


def test_files_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in python_files()}
    long = {where(p): n for p, n in lengths.items() if n > MAX_FILE_LINES}
    assert not long


def test_functions_are_short():
    long = {
        f"{where(path, function.lineno)} {function.name}": length(function)
        for path in python_files()
        for function in functions(path)
        if length(function) > MAX_FUNCTION_LINES
    }
    assert not long


def test_functions_take_few_arguments():
    many = {}
    for path in modules().values():
        own = methods(path)
        for function in functions(path):
            given = function.args
            count = len(given.posonlyargs + given.args + given.kwonlyargs)
            if count - (function in own) > MAX_ARGUMENTS:
                many[f"{where(path, function.lineno)} {function.name}"] = count
    assert not many


def test_a_blanket_except_gives_its_reason():
    reason = re.compile(r"# (?!noqa: BLE001$)\w")
    blanket = [
        (path, node)
        for path in python_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and _is_blanket(node)
    ]
    assert not [
        where(path, node.lineno)
        for path, node in blanket
        if not _raises_again(node)
        if not reason.search(path.read_text().splitlines()[node.lineno - 1])
    ]


def _is_blanket(handler):
    names = {"Exception", "BaseException"}
    return handler.type is None or ast.unparse(handler.type) in names


def _raises_again(handler):
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_nothing_is_left_unfinished():
    wrong = [
        where(path, number)
        for path in python_files()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if UNFINISHED.search(line)
    ]
    wrong += [
        where(path, node.lineno)
        for path in modules().values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
    ]
    assert not wrong


def test_every_test_asserts_something():
    tests = [
        (path, function)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for function in functions(path)
        if function.name.startswith("test_")
    ]
    assert len(tests) > 100
    assert not [
        f"{where(path, function.lineno)} {function.name}"
        for path, function in tests
        if not any(map(_asserts, ast.walk(function)))
    ]


def _asserts(node):
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        return called.startswith("assert") or called in {"raises", "warns"}
    return isinstance(node, ast.Assert)


def test_the_wheel_holds_the_library_only():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["packages"]["find"] == {
        "include": ["metricopt*"]
    }
    assert project["project"]["license-files"] == ["LICENSE"]
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")


def test_no_file_is_large():
    large = [p for p in repository_files() if p.stat().st_size > MAX_FILE_BYTES]
    assert not [where(path) for path in large]


def test_no_text_names_a_machine():
    wrong = []
    for path in repository_files():
        if (
            path.suffix in (".png", ".safetensors")
            or path.relative_to(ROOT).parts[0] == ".ci"
        ):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        found = (n for n, text in enumerate(lines, 1) if MACHINE_PATHS.search(text))
        wrong += [where(path, number) for number in found]
    assert not wrong
