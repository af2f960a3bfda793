"""Figure S2: its planes are told the runs of their own column and replicate."""

import pytest

from benchmarks.runs.codec import decode, encode
from benchmarks.runs.spec import RunSpec
from benchmarks.tables.metricopt.figs2 import PLANES
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.problems.data_variants import variants_are_full


@pytest.mark.parametrize("tier", ["smoke", "local"])
def test_planes_lead_to_solutions_of_their_own_place(tier, monkeypatch):
    variants_are_full(monkeypatch)
    specs = find_experiment("figs2").specs(tier, 2, True)
    known = {spec.digest: spec for spec in specs}
    planes = [spec for spec in specs if spec.block == PLANES.name]
    assert planes
    for spec in planes:
        told = [decode(RunSpec, each) for each in spec.arm.settings["solutions"]]
        assert len(told) >= 3
        for each in told:
            assert each.digest in known
            assert (each.column, each.replicate) == (spec.column, spec.replicate)
            on_phi = spec.row == "phi-plane"
            assert not on_phi or encode(each.pipeline) == encode(spec.pipeline)
