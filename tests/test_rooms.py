"""Which module may import which: rooms, directions, no circles, one public face."""

import ast
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.source_tree import (
    PACKAGES,
    definitions,
    imports,
    is_unit,
    modules,
    tree,
    where,
)

# Each room with the rooms it may import from; every package's own face, its
# `__init__`, stands on top of it.
ROOMS = {
    "metricopt.errors": "",
    "metricopt.files": "errors",
    "metricopt.reading.inputs": "errors",
    "metricopt.reading.outputs": "errors",
    "metricopt.ranking": "",
    "metricopt.process": "",
    "metricopt.registry": "errors",
    "metricopt.meaning": "errors outputs",
    "metricopt.adapters": "errors files inputs meaning outputs registry process",
    "metricopt.detection": "errors outputs",
    "metricopt.metrics": "errors meaning outputs registry detection",
    "metricopt.losses": "errors outputs registry detection",
    "metricopt.statistics": "errors metrics outputs registry detection",
    "metricopt.tasks": "errors inputs meaning outputs registry process adapters losses "
    "metrics statistics",
    "metricopt.algorithm1": "errors files ranking process adapters metrics "
    "statistics tasks",
    "metricopt.methods": "errors outputs registry process metrics statistics "
    "tasks values",
    "metricopt.reading.doubts": "",
    "metricopt.figures": "",
    "metricopt.finetuned": "errors adapters figures inputs meaning metrics tasks "
    "values methods",
    "metricopt.options": "errors inputs meaning outputs process adapters metrics tasks "
    "values methods",
    "metricopt.journal": "errors adapters metrics options tasks",
    "metricopt.call": "meaning tasks journal",
    "metricopt.improvement": "call doubts errors meaning options outputs process "
    "adapters metrics tasks values methods finetuned journal",
    "metricopt.finetune": "call errors inputs options outputs process adapters metrics "
    "tasks finetuned journal improvement",
    "baselines.losses": "",
    "baselines.detection_losses": "losses",
    "baselines.embedding_losses": "losses",
    "baselines.validation": "",
    "baselines.optimizers": "",
    "baselines.training": "losses optimizers validation",
    "baselines.learned_losses": "validation",
    "baselines.network_methods": "learned_losses losses training validation",
    "baselines.post_hoc": "validation",
    "baselines.phi_methods": "",
    "benchmarks.runs": "",
    "benchmarks.networks": "",
    "benchmarks.data": "runs",
    "benchmarks.problems": "runs networks datasets",
    "benchmarks.arms": "runs pipelines",
    "benchmarks.execution": "runs pipelines arms",
    "benchmarks.report": "runs",
    "benchmarks.experiments": "runs datasets pipelines report",
    "benchmarks.cli": "runs networks datasets pipelines arms execution report "
    "experiments",
    "benchmarks.speed": "runs networks datasets pipelines arms execution report "
    "experiments",
    "benchmarks.__main__": "cli",
}
BELOW = {"metricopt": "", "baselines": "metricopt", "benchmarks": "metricopt baselines"}


def room(name):
    """The room of a module: the first two parts of its name."""
    return ".".join(name.split(".")[:2])


def allowed(source, target):
    """Whether a module may import another."""
    package, other = source.split(".")[0], target.split(".")[0]
    if package != other:
        return other in BELOW[package].split()
    if source == package or room(source) == room(target):
        return True
    return room(target).split(".")[1] in ROOMS[room(source)].split()


def test_every_module_is_in_a_room():
    rooms = {room(name) for name in modules() if name not in PACKAGES}
    assert rooms == set(ROOMS)


def test_rooms_import_in_the_given_directions_only():
    assert not [edge for edge in imports() if not allowed(edge.source, edge.target)]
    assert {edge.source.split(".")[0] for edge in imports()} == set(PACKAGES)


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
    faces = {n: p for n, p in modules().items() if p.name == "__init__.py"}
    faces.pop("metricopt")
    assert not [name for name, path in faces.items() if len(tree(path).body) > 1]
    listed = [
        where(path, node.lineno)
        for name, path in modules().items()
        if name != "metricopt"
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
