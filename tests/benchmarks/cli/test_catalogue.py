"""The catalogue, read from the source, holds what the registries hold."""

import ast
import importlib
import re

import pytest

from benchmarks.__main__ import main
from benchmarks.cli import catalogue
from benchmarks.runs.paths import ROOT
from metricopt.registry import Registry
from tests.source_tree import modules, nodes

KINDS = catalogue.kinds()


def units_of(name):
    (kind,) = [kind for kind in KINDS if kind.name == name]
    return catalogue.units(kind)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_the_catalogue_holds_the_names_of_the_registry(kind):
    registry = getattr(importlib.import_module(kind.module), kind.variable)
    assert isinstance(registry, Registry)
    assert registry.kind == kind.name
    names = catalogue.units(kind)
    # A module of another package may have registered its own when it was imported.
    others = {
        name
        for name in set(registry) - set(names)
        if not registry.get(name).__module__.startswith(kind.packages)
    }
    assert list(names) == [name for name in registry if name not in others]
    assert all(names.values())


def test_every_registry_is_in_the_catalogue():
    made = [
        name
        for name, path in modules().items()
        if "Registry" in path.read_text(encoding="utf-8")
        for node in nodes(path)
        if isinstance(node, ast.Call)
        if re.match(r"(\w+\.)*Registry\b", ast.unparse(node.func))
    ]
    unnamed = ("benchmarks.rows.contract", "benchmarks.tables.table")
    assert len(unnamed) == len(catalogue.UNNAMED)
    assert sorted(made) == sorted([*unnamed, *(kind.module for kind in KINDS)])
    assert len(made) > 5


def test_names_are_found_in_every_form_of_registration(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks" / "toys"
    folder.mkdir(parents=True)
    (folder / "contract.py").write_text(
        'TOYS: Registry[type] = Registry(\n    "glass of toys", "benchmarks.toys"\n)\n'
    )
    (folder / "ball.py").write_text(
        '"""A ball.\n\nIt rolls."""\n@TOYS.register("ball")\nclass Ball: ...\n'
        '@OTHER.register("no-toy")\nclass Other: ...\n'
    )
    (folder / "cube.py").write_text('"""Cubes."""\nTOYS.register("a-cube")(make(1))\n')
    for name in ("metricopt", "baselines"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(catalogue, "ROOT", tmp_path)
    (kind,) = catalogue.kinds()
    assert kind == catalogue.Kind(
        "glass of toys", "benchmarks.toys.contract", "TOYS", ("benchmarks.toys",)
    )
    assert kind.plural == "glasses of toys"
    assert catalogue.units(kind) == {"a-cube": "Cubes.", "ball": "A ball."}
    with pytest.raises(KeyError, match="experiment"):
        catalogue.experiments()


def test_list_shows_everything_in_aligned_lines(capsys):
    assert main(["list"]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "experiments"
    experiments = [line for line in lines if line.startswith("  ")]
    shown = dict(line.split(maxsplit=1) for line in experiments)
    assert shown == catalogue.experiments()
    kinds = [kind for kind in KINDS if kind.name != "experiment"]
    others = lines[len(experiments) :]
    assert [line.split("  ")[0] for line in others] == [kind.plural for kind in kinds]
    starts = {len(line) - len(line.split("  ", 1)[1].lstrip()) for line in others}
    assert len(starts) == 1
    for line, kind in zip(others, kinds, strict=True):
        names = line[starts.copy().pop() :].split(", ")
        assert names == list(catalogue.units(kind))


def test_ci_takes_the_experiments_from_the_list():
    text = (ROOT / ".ci" / "run").read_text()
    assert "list --names experiments" in text
    assert not [name for name in catalogue.experiments() if name in text.split()]


def test_list_gives_scripts_the_names_alone(capsys):
    assert main(["list", "--names", "experiments"]) == 0
    assert capsys.readouterr().out.splitlines() == list(catalogue.experiments())


def test_methods_are_listed_with_paper_contract_and_cost(capsys):
    assert main(["list", "methods"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    for kind in ("method", "rival", "network method"):
        assert set(units_of(kind)) <= set(lines)
    assert "trains the network" in lines["ala"]
    assert lines["ala"].endswith("Huang et al., ICML 2019, Sec. 3 to 5")
    # Fifteen queries in most tables.
    assert lines["metricopt-outputs"].split()[3:4] == ["15"]
    assert lines["fw-eg"].endswith("Hiranandani et al., ICML 2021")


def test_a_kind_is_listed_by_its_name(capsys):
    assert main(["list", "losses"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(units_of("loss"))
    assert main(["list", "losse"]) == 2
    assert "did you mean 'losses'?" in capsys.readouterr().err
