"""The rules of CONTRIBUTING.md that a machine can check."""

import ast
import re
import sys
import tomllib

from tests.source_tree import (
    ROOT,
    functions,
    length,
    methods,
    modules,
    nodes,
    python_files,
    repository_files,
    tree,
    where,
)

MAX_FILES = 18
# What turns settings into JSON and back.
CODECS = {"benchmarks.runs.codec"}
SETTINGS = {
    *("settings", "spec", "arm", "backbone", "problem", "adapter", "finetune"),
    *("budget", "recipe", "rollout", "schedule", "pretraining", "options", "changes"),
}
# What a user may give for a method.
USERS_ARGUMENT = {"str", "Method", "str | Method"}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_ARGUMENTS = 400, 40, 6
MAX_FILE_BYTES = 5 * 1024 * 1024
# Written in pieces, so that this file does not hold what it looks for.
MACHINE_PATHS = re.compile("(?<![\\w.])/(?:work|home|root)" + "/|\\.\\./" + "shared")
UNFINISHED = re.compile("TO" + "DO|FIX" + "ME|XX" + "X")

BORROWED = re.compile(r"\W*(?:of|its|that of|those of)\b", re.IGNORECASE)


def test_a_folder_shows_few_names():
    folders = {path.parent for path in modules().values()}
    counts = {
        where(folder): len([p for p in folder.glob("*.py") if p.stem != "__init__"])
        for folder in folders
    }
    assert not {name: n for name, n in counts.items() if n > MAX_FILES}


def test_nothing_is_kept_in_modules():
    """No cache of data, no global, no empty container waiting to be filled."""
    kept = []
    for path in modules().values():
        for node in nodes(path):
            if isinstance(node, ast.Global):
                kept.append(where(path, node.lineno))
            named = node.id if isinstance(node, ast.Name) else ""
            if named == "lru_cache":
                kept.append(where(path, node.lineno))
        for node in tree(path).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and _is_empty(node.value):
                kept.append(where(path, node.lineno))
    assert not kept


def _is_empty(value):
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List):
        return not value.elts
    text = "" if value is None else ast.unparse(value)
    return text in {"set()", "dict()", "list()"}


def test_settings_are_read_by_attribute():
    wrong = [
        where(path, node.lineno)
        for name, path in modules().items()
        if name not in CODECS
        for node in nodes(path)
        if _reads_by_key(node)
    ]
    assert not wrong


def _reads_by_key(node):
    """Whether a node is `<settings>["key"]` or `<settings>.get("key")`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        owner, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in ("get", "pop", "setdefault") or not node.args:
            return False
        owner, key = node.func.value, node.args[0]
    else:
        return False
    named = ast.unparse(owner).rpartition(".")[2]
    is_text = isinstance(key, ast.Constant) and isinstance(key.value, str)
    return is_text and named in SETTINGS


def test_nobody_asks_for_the_class_of_a_method():
    wrong = [
        where(path, node.lineno)
        for path in modules().values()
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"isinstance", "issubclass", "hasattr", "getattr"}
        and "method" in ast.unparse(node.args[0]).lower()
        and ast.unparse(node.args[1]) not in USERS_ARGUMENT
    ]
    assert not wrong


def test_module_names_say_what_is_inside():
    last = {name: name.split(".")[-1] for name in modules()}
    assert not [name for name, part in last.items() if part in VAGUE_NAMES]
    # A room may be called as a module of Python is: its files are never run by name.
    library = sys.stdlib_module_names - {"__main__"}
    files = {name for name, path in modules().items() if path.stem != "__init__"}
    assert not [name for name in files if last[name] in library]


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
        for node in nodes(path)
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
        for node in nodes(path)
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


def test_no_docstring_begins_with_a_noun_that_is_not_there():
    """None begins with "of", "its" or "that of": it says what the thing is."""
    wrong = [
        where(path, node.lineno)
        for path in modules().values()
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str) and BORROWED.match(node.value.value)
    ]
    assert not wrong


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
