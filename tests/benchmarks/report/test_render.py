"""Tables as text: Markdown, LaTeX and a terminal's."""

from benchmarks.report import tables
from benchmarks.report.cells import judge
from benchmarks.report.render import align, latex_text, to_latex, to_markdown
from tests.benchmarks.report.report_cases import ARMS, BALANCED, LAYOUT

TABLE = tables.main_table(LAYOUT, judge(LAYOUT, ARMS), BALANCED)


def test_markdown_is_aligned():
    lines = to_markdown(TABLE).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[2].startswith("| loss only ")


def test_latex_is_escaped():
    assert latex_text("a_b & 5 % ±") == r"a\_b \& 5 \% $\pm$"
    text = to_latex(TABLE, caption="100 %")
    assert "method & A9A MCR $\\downarrow$ & A9A F1 $\\uparrow$" in text
    assert "\nloss only & .2100$\\pm$.0100 (3) & $\\cdot$ & $\\cdot$ & 0 \\\\\n" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index("bottomrule")
    assert r"\caption{100 \%}" in text


def test_terminal_tables_are_aligned_and_numbers_stand_right():
    rows = [("name", "runs", "where"), ("  deep", "1,200", "a"), ("b", "7", "")]
    assert align(rows).splitlines() == [
        "name      runs  where",
        "  deep   1,200  a",
        "b            7",
    ]
    assert align([("name", "runs")]).split() == ["name", "runs"]
