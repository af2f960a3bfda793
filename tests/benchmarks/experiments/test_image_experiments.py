"""Experiments on CIFAR-10: every run has its place, whatever data are here."""

import pytest

from benchmarks.experiments import mismatch, table1, table2
from benchmarks.experiments.shared import problems


@pytest.mark.parametrize("experiment", [table1, table2, mismatch])
def test_every_run_has_its_row_and_column(experiment, monkeypatch):
    monkeypatch.setattr(problems, "resolve_variant", lambda *a, **o: "full")
    specs = experiment.specs("local", None, True)
    layout = experiment.layout("local")
    places = {(spec.row, spec.column, spec.replicate) for spec in specs}
    assert len(places) == len(specs)
    assert {row for row, *_ in places} <= set(layout.row_names)
    assert {column for _, column, _ in places} == {c.name for c in layout.columns}
    assert all(spec.pipeline.name == "images" for spec in specs)
