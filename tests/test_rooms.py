"""Which module may import which: rooms, directions, no circles, one public face."""

import ast
import importlib
import re
from graphlib import CycleError, TopologicalSorter

import pytest

from benchmarks.cli.catalogue import kinds
from tests.source_tree import (
    PACKAGES,
    ROOT,
    definitions,
    imports,
    is_unit,
    modules,
    tree,
    where,
)

# Each room with the rooms it may import from, which stand above it in this list. A room
# is a folder or a file; a file named here is not in the room of its folder. Every
# package's own face, its `__init__`, stands on top of all.
ROOMS = {
    "metricopt.errors": "",
    "metricopt.files": "errors",
    "metricopt.late_names": "",
    "metricopt.ranking": "",
    "metricopt.estimate": "",
    "metricopt.structured": "errors",
    "metricopt.process": "",
    "metricopt.figures": "",
    "metricopt.registry": "errors",
    "metricopt.reading.inputs": "errors",
    "metricopt.reading.outputs": "errors",
    "metricopt.tasks.padding": "",
    "metricopt.reading.columns": "errors reading.inputs reading.outputs",
    "metricopt.reading.layout": "errors",
    "metricopt.reading.meaning": "errors reading.layout reading.outputs",
    "metricopt.reading.examples": "errors reading.inputs reading.outputs",
    "metricopt.tasks.sampling": "errors reading.columns reading.inputs",
    "metricopt.tasks.examples": "errors reading.columns reading.examples "
    "tasks.padding "
    "reading.inputs reading.outputs tasks.sampling",
    "metricopt.tasks.clusters": "errors reading.columns reading.inputs tasks.examples "
    "tasks.sampling",
    "metricopt.tasks.row_losses": "errors reading.meaning reading.outputs",
    "metricopt.adapters": "errors files process reading.inputs reading.meaning "
    "reading.outputs",
    "metricopt.detection": "errors late_names reading.outputs",
    "metricopt.metrics": "errors registry reading.columns reading.outputs detection "
    "structured",
    "metricopt.losses": "errors registry reading.outputs detection structured",
    "metricopt.statistics": "errors registry reading.columns reading.outputs "
    "detection metrics structured",
    "metricopt.reading": "errors registry reading.columns reading.inputs "
    "reading.outputs reading.layout reading.meaning tasks.sampling tasks.examples "
    "tasks.row_losses adapters metrics",
    "metricopt.tasks": "errors registry process reading reading.columns "
    "reading.inputs reading.outputs reading.meaning tasks.sampling tasks.examples "
    "tasks.row_losses adapters detection metrics losses statistics",
    "metricopt.geometry": "errors late_names",
    "metricopt.checkpoints": "errors files",
    "metricopt.fewshot": "errors late_names process geometry checkpoints",
    "metricopt.learned_optimizers": "errors files late_names registry process "
    "checkpoints",
    "metricopt.gaussian_processes": "errors",
    "metricopt.algorithm1": "errors ranking process gaussian_processes adapters tasks "
    "geometry learned_optimizers",
    "metricopt.methods": "errors estimate files registry process metrics statistics "
    "tasks learned_optimizers algorithm1",
    "metricopt.algorithm1.meta_preparation": "errors gaussian_processes tasks "
    "tasks algorithm1 methods",
    "metricopt.algorithm1.guided_method": "tasks algorithm1 "
    "algorithm1.meta_preparation methods",
    "metricopt.algorithm_s1": "errors process gaussian_processes tasks "
    "learned_optimizers algorithm1 algorithm1.meta_preparation methods",
    "metricopt.algorithm1.metricopt": "tasks algorithm1 algorithm1.guided_method "
    "methods",
    "metricopt.algorithm1.metricopt_mirror": "process tasks geometry algorithm1 "
    "algorithm1.guided_method methods",
    "metricopt.algorithm1.metricopt_literal": "tasks algorithm1 "
    "algorithm1.meta_preparation methods",
    "metricopt.on_outputs": "errors estimate process reading.outputs metrics "
    "statistics tasks algorithm1 methods",
    "metricopt.algorithm_s1.supervision": "errors tasks algorithm_s1 on_outputs",
    "metricopt.finetuned": "errors estimate figures reading.inputs reading.meaning "
    "adapters metrics methods",
    "metricopt.options": "errors registry process reading.layout reading.meaning "
    "tasks.sampling adapters metrics methods",
    "metricopt.journal": "errors files reading reading.columns tasks.examples "
    "tasks.row_losses adapters metrics options",
    "metricopt.given": "reading.columns reading.meaning tasks.examples "
    "tasks.clusters tasks.row_losses metrics",
    "metricopt.call": "errors process reading reading.columns reading.outputs "
    "reading.meaning tasks tasks.examples tasks.row_losses adapters metrics losses "
    "algorithm1 methods on_outputs finetuned options journal given",
    "metricopt.confirmed_call": "process reading tasks tasks.clusters adapters metrics "
    "methods finetuned options journal given call",
    "metricopt.finetune": "errors process reading reading.columns reading.inputs "
    "reading.outputs reading.meaning tasks.examples tasks.clusters "
    "tasks.row_losses adapters metrics finetuned options journal given call "
    "confirmed_call",
    "metricopt.tuned": "errors estimate reading.columns reading.inputs "
    "reading.outputs adapters methods finetuned",
    "metricopt.tune": "errors process reading reading.inputs reading.outputs "
    "reading.columns reading.meaning tasks tasks.examples tasks.sampling adapters "
    "metrics statistics methods on_outputs finetuned options given confirmed_call "
    "finetune tuned",
    "metricopt.estimators": "errors estimate reading reading.outputs reading.meaning "
    "tasks.clusters metrics tune tuned",
    "metricopt.sklearn": "errors reading reading.columns reading.meaning metrics tuned "
    "estimators",
    "baselines.losses": "",
    "baselines.detection_losses": "losses",
    "baselines.embedding_losses": "losses",
    "baselines.validation": "",
    "baselines.optimizers": "",
    "baselines.training": "losses optimizers validation",
    "baselines.learned_losses": "embedding_losses losses validation",
    "baselines.network_methods": "embedding_losses learned_losses losses training "
    "validation",
    "baselines.post_hoc": "validation",
    "baselines.phi_methods": "",
    "baselines.learners": "",
    "benchmarks.runs": "",
    "benchmarks.networks": "",
    "benchmarks.data": "runs",
    "benchmarks.problems": "runs networks data",
    "benchmarks.arms": "runs problems",
    "benchmarks.execution": "runs problems arms",
    "benchmarks.rows": "runs problems",
    "benchmarks.report": "runs rows",
    "benchmarks.tables": "runs data problems rows report",
    "benchmarks.cli.catalogue": "runs",
    "benchmarks.website": "runs rows report tables cli.catalogue",
    "benchmarks.cli": "runs networks data problems arms execution rows report tables "
    "cli.catalogue website",
    "benchmarks.speed": "runs networks data problems arms execution report tables",
    "benchmarks.__main__": "runs cli",
}
BELOW = {"metricopt": "", "baselines": "metricopt", "benchmarks": "metricopt baselines"}
FACES = (
    "metricopt",
    "metricopt.detection",
    "metricopt.fewshot",
    "metricopt.geometry",
    "metricopt.learned_optimizers",
    "metricopt.sklearn",
)
"""What users import from."""


def room(name):
    """The room of a module: the longest beginning of its name that is one."""
    parts = name.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 1, -1))
    return next((found for found in names if found in ROOMS), name)


def allowed(source, target):
    """Whether a module may import another."""
    package, other = source.split(".")[0], target.split(".")[0]
    if package != other:
        return other in BELOW[package].split()
    if source == package or room(source) == room(target):
        return True
    return room(target) in below(room(source))


def below(name):
    """The rooms that a room may import from."""
    package = name.split(".")[0]
    return {f"{package}.{part}" for part in ROOMS[name].split()}


def test_every_module_is_in_a_room():
    rooms = {room(name) for name in modules() if name not in PACKAGES}
    assert rooms == set(ROOMS)


def test_rooms_import_in_the_given_directions_only():
    assert not [edge for edge in imports() if not allowed(edge.source, edge.target)]
    assert {edge.source.split(".")[0] for edge in imports()} == set(PACKAGES)


def test_rooms_stand_above_those_they_are_imported_by():
    order = list(ROOMS)
    upwards = {
        (name, other)
        for name in ROOMS
        for other in below(name)
        if order.index(other) > order.index(name)
    }
    assert not upwards


def test_units_of_one_registry_do_not_import_each_other():
    wrong = [
        edge
        for edge in imports()
        if edge.source.rpartition(".")[0] == edge.target.rpartition(".")[0]
        and is_unit(edge.source)
        and is_unit(edge.target)
    ]
    assert not wrong


@pytest.mark.parametrize("typing", [False, True])
def test_no_module_imports_itself_through_others(typing):
    graph = {name: set() for name in modules()}
    for edge in imports(typing=typing):
        graph[edge.source].add(edge.target)
    cycle = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
    assert not cycle


def test_only_the_library_has_a_public_face():
    """Every name is imported from the module that defines it."""
    packages = {n: p for n, p in modules().items() if p.name == "__init__.py"}
    assert not [
        name
        for name, path in packages.items()
        if name not in FACES and len(tree(path).body) > 1
    ]
    listed = [
        where(path, node.lineno)
        for name, path in modules().items()
        if name not in FACES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Name) and node.id == "__all__"
    ]
    assert not listed
    defined = {name: definitions(path) for name, path in modules().items()}
    assert not [
        f"{edge.source} takes {name} from {edge.target}"
        for edge in imports(typing=True)
        if edge.target != "metricopt"
        for name in edge.names
        if name not in defined[edge.target] and f"{edge.target}.{name}" not in defined
    ]


def test_pages_name_what_users_can_import():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    taken, named = [], []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```py(?:thon)?\n(.*?)```", text, re.DOTALL):
            taken += [
                (node.module, part.name)
                for node in ast.walk(ast.parse(block))
                if isinstance(node, ast.ImportFrom) and node.module
                if node.module.split(".")[0] in PACKAGES
                for part in node.names
            ]
        named += re.findall(r"(?<![\w/.])(metricopt(?:\.[a-z_]+)?)\.(\w+)", text)
    offered = {face: vars(importlib.import_module(face))["__all__"] for face in FACES}
    assert ("metricopt", "Statistics") in taken
    assert ("metricopt.detection", "DetectionMetric") in named
    groups = {group for kind in kinds() for group in kind.packages}
    named = [each for each in named if ".".join(each) not in groups]
    for face, name in {*taken, *named} - {
        ("metricopt", "detection"),
        ("metricopt", "fewshot"),
        ("metricopt", "geometry"),
        ("metricopt", "learned_optimizers"),
        ("metricopt", "sklearn"),
    }:
        assert name in offered[face], f"{face}.{name}"
    for face, names in offered.items():
        assert all(hasattr(importlib.import_module(face), name) for name in names)


def test_the_reference_lists_what_users_can_import():
    text = (ROOT / "docs" / "api" / "metricopt.md").read_text(encoding="utf-8")
    listed = re.findall(r":: (?:metricopt\.)?(\w+)$", text, re.MULTILINE)
    offered = vars(importlib.import_module("metricopt"))["__all__"]
    assert set(listed) - {"metricopt"} == set(offered)
