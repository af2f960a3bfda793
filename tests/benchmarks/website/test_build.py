import csv
import json
import math
import re
import shutil
import subprocess
from html import unescape

import pytest
from PIL import Image, ImageChops, ImageStat

from benchmarks.__main__ import main
from benchmarks.cli.verbs import website
from benchmarks.report.page import FIGURES, GAP, NOTES, RIVAL, VALUE_FUNCTIONS
from benchmarks.report.sections.queries import EQUAL_QUERIES, QUERIES_TO_REACH
from benchmarks.runs.paths import COMMITTED_RESULTS
from benchmarks.tables.registry import find_experiment
from benchmarks.website.build import write_site
from benchmarks.website.pictures import KINDS
from benchmarks.website.run_data import FIRST_SIGN, by_field, packed
from metricopt.errors import ConfigError, DataError

TABLES = sorted(
    path.parent.parent.name for path in COMMITTED_RESULTS.glob("*/local/table.csv")
)
MEGABYTES = 8


@pytest.fixture
def few_results(tmp_path):
    """A folder with two committed reports."""
    for name in ("fig4", "sine"):
        shutil.copytree(COMMITTED_RESULTS / name, tmp_path / "few" / name)
    return tmp_path / "few"


def assigned(path):
    """The content of a script that assigns one value."""
    return json.loads(
        path.read_text().partition("=")[2].partition("=")[2].rstrip(";\n")
    )


def test_every_method_with_runs_has_a_title_and_an_equation(site):
    _, *parts = (site / "methods.html").read_text().split('<article class="method" id=')
    assert len(parts) > 40
    for part in parts:
        assert re.search(r"</h3>\n<p>\w", part), part[:30]
        assert '<p class="equation">' in part, part[:30]


@pytest.mark.parametrize("name", TABLES)
def test_cells_are_those_of_the_committed_table(site, name):
    committed = (COMMITTED_RESULTS / name / "local" / "table.csv").read_text()
    assert (site / "data" / f"{name}.csv").read_text() == committed
    expected = [
        {key: text for key, text in line.items() if text}
        for line in csv.DictReader(committed.splitlines())
    ]
    lines = (site / "data" / f"{name}.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) == len(expected)
    for line, want in zip(found, expected, strict=True):
        assert line.keys() == want.keys()
        for key, value in line.items():
            assert value == (
                float(want[key]) if isinstance(value, float | int) else want[key]
            )


@pytest.mark.parametrize("name", TABLES)
def test_charts_are_drawn_from_the_numbers_of_the_table(site, name):
    data = assigned(site / "data" / f"{name}.js")
    text = (site / "data" / f"{name}.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for values, line in zip(data["cells"], lines, strict=True):
        drawn = dict(zip(data["names"], values, strict=True))
        drawn.pop("own")
        assert {
            k: v for k, v in drawn.items() if v not in (None, "")
        }.items() <= line.items()


def test_curves_end_at_the_numbers_of_the_table(site):
    """Where no budget is left to spend, a curve has come to the mean of its cell."""
    data = assigned(site / "data" / "table3.js")
    cells = {
        tuple(values[:3]): dict(zip(data["names"], values, strict=True))
        for values in data["cells"]
    }
    compared = 0
    for line in data["curves"]:
        cell = cells.get((line["block"], line["row"], line["column"]))
        if cell and line["x"][-1] == cell["queries"]:
            assert line["mean"][-1] == pytest.approx(cell["mean"], rel=1e-5)
            compared += 1
    assert compared > 100


def test_a_page_holds_every_record(site):
    index = (site / "data" / "runs" / "index.js").read_text()
    for name in ("table3", "sine"):
        with (COMMITTED_RESULTS / name / "local" / "records.jsonl").open() as lines:
            for line in lines:
                assert json.loads(line)["digest"][:8] in index


@pytest.mark.parametrize("name", TABLES)
def test_sections_are_those_of_the_committed_report(site, name):
    layout = find_experiment(name).layout("local")
    text = (COMMITTED_RESULTS / name / "local" / "table.md").read_text()
    others = {RIVAL, GAP, VALUE_FUNCTIONS, FIGURES, NOTES, EQUAL_QUERIES}
    others.add(QUERIES_TO_REACH)
    others |= {f"## {label}" for label in blocks_of(layout)}
    expected = [
        part
        for part in re.split(r"\n(?=## )", text)[1:]
        if part.partition("\n")[0] not in others and not part.startswith("## Beside ")
    ]
    page = (site / f"{name}.html").read_text()
    found = page.split('<section class="told"')[1:]
    assert len(found) == len(expected)
    for section, part in zip(found, expected, strict=True):
        title, _, body = part.partition("\n")
        assert f">{title.removeprefix('## ')}</h2>" in section
        lines = [line for line in body.splitlines() if re.match(r"\|(?!:?-)", line)]
        texts = [[each.strip() for each in line[1:-1].split(" | ")] for line in lines]
        rows = re.findall(r"<tr>(.*?)</tr>", section, re.DOTALL)
        cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
        assert [[plain(cell) for cell in row] for row in cells] == texts


def blocks_of(layout):
    return [block.label for block in layout.blocks]


def plain(html):
    return unescape(re.sub(r"</?code>", "`", html))


def test_bounds_and_claims_are_on_their_pages(site):
    bounds = (site / "tuned-bounds.html").read_text()
    assert 'Below the tables: <a href="#section-1">Bounds</a>.' in bounds
    row = r"<td>MetricOpt on outputs \(ours\)</td>\s*<td class=\"n\">150</td>"
    assert re.search(row + r"\s*<td>\d+ %</td>", bounds)
    assert bounds.count("<details><summary>") >= 30
    claims = (site / "coverage.html").read_text()
    assert ">What was claimed</h2>" in claims and "<th>interval holds</th>" in claims


def test_figures_that_no_chart_shows_are_on_their_pages(site):
    shown = 0
    for path in sorted(COMMITTED_RESULTS.glob("*/local/*.png")):
        if not path.name.startswith((*KINDS,)):
            continue
        name, shown = path.parents[1].name, shown + 1
        with Image.open(site / "data" / f"{name}-{path.stem}.webp") as seen:
            with Image.open(path) as drawn:
                gone = ImageChops.difference(drawn.convert("RGB"), seen.convert("RGB"))
            width, height = seen.size
        assert max(ImageStat.Stat(gone).mean) < 3
        page = (site / f"{name}.html").read_text()
        assert f'{path.stem}.webp" width="{width}" height="{height}" alt="' in page
    assert shown > 5


def test_it_is_small(site):
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert size <= MEGABYTES * 1e6


def test_every_page_tells_the_digest_of_the_records(site):
    footers = {
        re.search(r"digest <code>(\w+)</code>", page.read_text())[1]
        for page in site.glob("*.html")
    }
    assert len(footers) == 1


def test_every_link_leads_to_a_page_of_the_site(site):
    ids = {
        page.name: set(re.findall(r'\bid="([^"]+)"', page.read_text()))
        for page in site.glob("*.html")
    }
    cells = {
        page.name: set(re.findall(r'<a href="#([^"]+/[^"]+)"', page.read_text()))
        for page in site.glob("*.html")
    }
    for page in site.glob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"]+)"', page.read_text()):
            target, _, place = link.partition("#")
            if target.startswith("data:,"):
                continue
            assert (site / (target or page.name)).is_file(), (page.name, link)
            known = ids.get(target or page.name, set()) | cells.get(
                target or page.name, set()
            )
            assert not place or place in known, (page.name, link)


def test_own_runs_stand_beside_the_committed_ones(few_results, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(few_results / "fig4", own / "fig4")
    shutil.copytree(few_results / "sine" / "local", own / "sine" / "smoke")
    shutil.rmtree(few_results / "sine")
    write_site(tmp_path / "site", few_results, own)
    page = (tmp_path / "site" / "fig4.html").read_text()
    assert page.count('class="own">yours ') == 7
    write_site(tmp_path / "site", few_results)
    assert "yours" not in (tmp_path / "site" / "fig4.html").read_text()


def test_a_folder_with_other_files_is_left_alone(few_results, tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(
        ConfigError, match=r"expected no folder .*mine, or one with an earlier site"
    ):
        write_site(out, few_results)
    assert (out / "thesis.tex").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few", "mine"]


def test_without_reports_there_is_no_site(tmp_path):
    with pytest.raises(DataError, match=r"expected reports in .*, and there is none"):
        write_site(tmp_path / "site", tmp_path)
    assert not (tmp_path / "site").exists()


def test_the_verb_says_where_the_pages_are(few_results, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(website, "COMMITTED_RESULTS", few_results)
    assert main(["site", "--out", str(tmp_path / "pages")]) == 0
    told = capsys.readouterr().out
    assert told.startswith("61 runs in 2 tables, 1.")
    assert told.endswith(f"Open {tmp_path / 'pages' / 'index.html'}\n")


def test_scripts_are_short():
    """What pages do is little code of ours; pictures are drawn by a library."""
    from benchmarks.website.build import HERE

    lengths = {
        path.name: len(path.read_text().splitlines())
        for path in HERE.glob("static/*.js")
    }
    assert sum(lengths.values()) <= 280
    node = shutil.which("node")
    if node:
        for name in lengths:
            subprocess.run([node, "--check", HERE / "static" / name], check=True)


@pytest.mark.parametrize("size", [*range(17), 1_000])
def test_packed_bytes_are_fifteen_bits_a_character(size):
    content = bytes(number * 91 % 256 for number in range(size))
    signs = packed(content)
    assert len(signs) == math.ceil(size * 8 / 15)
    bits = "".join(f"{ord(sign) - FIRST_SIGN:015b}" for sign in signs)
    assert bytes(int(bits[8 * n : 8 * n + 8], 2) for n in range(size)) == content


def test_records_lie_field_by_field_as_they_are_written():
    lines = (COMMITTED_RESULTS / "sine/local/records.jsonl").read_text().splitlines()
    first, *values = by_field(lines).split("\n")
    names = json.loads(first)
    assert len(values) == len(names) * len(lines)
    for place, line in enumerate(lines):
        own = zip(names, values[place :: len(lines)], strict=True)
        assert "{" + ",".join(f'"{name}":{value}' for name, value in own) + "}" == line
    assert by_field([]) == "[]"
