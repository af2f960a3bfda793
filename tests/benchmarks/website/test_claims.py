import pytest

from benchmarks.report.paper_values import PAPER_VALUES
from benchmarks.runs.paths import COMMITTED_RESULTS
from benchmarks.tables.registry import find_experiment
from benchmarks.website import claims
from benchmarks.website.claims import CLAIMS, Claim, Judged, Witness
from benchmarks.website.reports import load


@pytest.fixture(scope="module")
def fig4(tmp_path_factory):
    """The reports of Figure 4 and Table 4 alone."""
    folder = tmp_path_factory.mktemp("results")
    for name in ("fig4", "table4"):
        (folder / name).symlink_to(COMMITTED_RESULTS / name)
    return load(folder)


def witness(kind):
    return Witness("", "", "", "", "", "", "", "", kind)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text)
def test_claims_name_numbers_and_places_that_exist(claim):
    assert bool(claim.row) != bool(claim.places)
    if claim.row:
        rows = {
            value.row
            for value in PAPER_VALUES
            if (value.table, value.column) == (claim.table, claim.column)
        }
        assert {claim.row, claim.over} <= rows
    for place in claim.places:
        experiment, block, column, row, over = place.split()
        layout = find_experiment(experiment).layout("local")
        assert block in [each.name for each in layout.blocks]
        assert column in [each.name for each in layout.columns]
        assert {row, over} <= set(layout.row_names)


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [
        ((), "not measured here"),
        (("better",), "holds here"),
        (("better", "unclear"), "holds in part"),
        (("better", "worse"), "holds in part"),
        (("unclear", "equal"), "not shown here"),
        (("",), "not shown here"),
        (("worse", "unclear"), "the opposite here"),
    ],
)
def test_cells_together_say_what_becomes_of_a_claim(kinds, verdict):
    assert Judged(CLAIMS[0], "", tuple(map(witness, kinds))).verdict == verdict


def test_numbers_are_printed_as_in_the_paper():
    (first,) = [
        each
        for each in CLAIMS
        if each.text.startswith("MetricOpt lowers the error on A9A")
    ]
    assert claims.printed(first) == ".1369, cross-entropy .152"
    assert claims.printed(Claim("a paper", "Figure 1", "in words")) == ""


def test_a_claim_is_held_against_every_cell_of_it(fig4):
    found = {each.claim.text: each for each in claims.judged(fig4)}
    accuracy = found["MetricOpt raises the accuracy of NASNet-A on ImageNet."]
    (cell,) = accuracy.witnesses
    assert (cell.page, cell.link) == (
        "table4",
        "natural/metricopt/imagenette-subset/top-1",
    )
    assert cell.verdict == "not shown" and accuracy.verdict == "not shown here"
    (second,) = found["A second run gains more."].witnesses
    assert (second.base_label, second.base) == ("MetricOpt (SGD)", cell.ours)
    (with_sgd,) = found[
        "With SGD, MetricOpt ends at a better AUCPR than the loss alone."
    ].witnesses
    assert (with_sgd.ours, with_sgd.kind) == (".8248±.0023", "better")
    assert found["MetricOpt lowers the error on A9A."].verdict == "not measured here"
