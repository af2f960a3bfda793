"""What a reader does with the pages, in a browser without a network."""

import json
import os
import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe

from benchmarks.runs.paths import COMMITTED_RESULTS, ROOT
from benchmarks.runs.store import read_jsonl
from tests.benchmarks.website.conftest import DRAWN

SCROLLED = ("table3", "methods", "tuned-bounds")
"""Pages of which a table scrolls within them."""
PAGES = (*SCROLLED, "index", "claims", "findings", "sine")
CELL = "table3.html#balanced/metricopt/a9a/mcr"
RUN = "#run:not(:has(#run-state)) h1"
"""The heading of a run that is shown."""


def first_record():
    path = COMMITTED_RESULTS / "table3" / "local" / "records.jsonl"
    with path.open() as lines:
        return json.loads(next(lines))


def visible_rows(page):
    return page.locator("tbody tr[data-sees]:visible").count()


def test_every_page_opens_without_an_error(visit, site):
    page = visit("index.html")
    for path in sorted(site.glob("*.html")):
        page.goto(f"file://{path}")
        page.evaluate(DRAWN)
        assert page.locator("h1, #run-state").first.is_visible()


TOPS = """boxes => boxes.map(box => {
    box.scrollTo({ top: 1e6, behavior: "instant" });
    const at = box.getBoundingClientRect().top, rows = $$("thead tr", box);
    const tops = rows.map(row => row.lastElementChild.getBoundingClientRect());
    return [tops[0].top - at, ...tops.slice(1).map((top, i) => top.top - at)];
})"""
"""Scrolls tables to their ends, and tells where the rows of their heads are then."""


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_their_window_and_heads_of_tables_stay_visible(visit, name, width):
    page = visit(f"{name}.html", width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if name not in SCROLLED:
        return
    found = page.locator(".scroll").evaluate_all(TOPS)
    assert found and all(0 <= first <= 2 for first, *_ in found)
    # A second row of the head begins below the first, and does not hide it.
    assert all(20 <= second <= 60 for _, *others in found for second in others)


@pytest.mark.parametrize("width", [360, 800])
def test_narrow_claims_say_the_column_of_every_line(visit, width):
    page = visit("claims.html", width=width)
    said = page.locator(".claims td").evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
    )
    names = page.locator(".claims thead tr").first.locator("th").all_text_contents()
    assert names == ["claim", "in the paper", "here", "verdict"]
    assert said == [f'"{name}"' for name in names[1:]] * (len(said) // 3)


def test_the_page_of_claims_scrolls_below_their_heads(visit):
    page = visit("claims.html")
    row = page.locator(".claims").first.locator("tbody tr").nth(12)
    row.evaluate("row => scrollTo({ top: row.offsetTop, behavior: 'instant' })")
    assert page.evaluate("scrollY") > 500
    box = page.locator(".claims thead th").first.bounding_box()
    assert box["y"] == pytest.approx(0, abs=1)
    assert page.locator("main .scroll").count() == 0


ALIKE = """() => {
    const seen = new Set();
    for (const row of document.querySelectorAll("tbody tr")) {
        const parts = [row, ...row.querySelectorAll("*")].map(
            part => [part.tagName, part.className, part.getAttribute("style")].join()
        );
        if (parts.every(part => seen.has(part))) row.remove();
        parts.forEach(part => seen.add(part));
    }
}"""
"""Removes rows of which no part looks other than one before."""
COLOURS = ["color-contrast", "link-in-text-block"]
"""Rules of colours, which take most of the time."""


def violations(page, **options):
    # Nothing is loaded anew, which files may not do, and what passes is not described.
    usual = {"preload": False, "resultTypes": ["violations"]}
    return Axe().run(page, options=usual | options).response["violations"]


@pytest.mark.parametrize("name", [*(f"{name}.html" for name in PAGES), CELL])
def test_nothing_serious_keeps_a_screen_reader_out(visit, name):
    page = visit(name)
    others = {rule: {"enabled": False} for rule in COLOURS}
    found = {"both": violations(page, rules=others)}
    page.evaluate(ALIKE)
    for scheme in ("light", "dark"):  # only colours differ
        page.emulate_media(color_scheme=scheme)
        # The browser tells of the change in its next frame; charts are drawn anew then.
        page.evaluate("new Promise(requestAnimationFrame)")
        page.evaluate(DRAWN)
        found[scheme] = violations(page, runOnly={"type": "rule", "values": COLOURS})
    serious = [
        (scheme, each["id"], each["nodes"][0]["html"][:200])
        for scheme, named in found.items()
        for each in named
        if each["impact"] in ("serious", "critical")
    ]
    assert not serious


def test_rows_are_filtered_by_sight_family_and_budget(visit):
    page = visit("table3.html")
    every = visible_rows(page)
    page.get_by_role("checkbox", name="outputs and labels").uncheck()
    assert 0 < visible_rows(page) < every
    assert page.locator('tr[data-sees="outputs and labels"]:visible').count() == 0
    assert (
        page.locator("#shown").inner_text() == f"{visible_rows(page)} of {every} rows"
    )
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function(f"$$('tr[data-sees]:not([hidden])').length === {every}")
    page.get_by_label("Family").select_option("ceilings")
    assert page.locator("tbody tr[data-sees]:visible th").all_inner_texts() == [
        "ceiling: dictionary",
        "ceiling: soft metric",
    ]
    page.get_by_label("Family").select_option("")
    page.get_by_label("Queries, at most").select_option("15")
    spent = page.locator("tbody tr[data-sees]:visible").evaluate_all(
        "rows => rows.map(row => Number(row.dataset.queries))"
    )
    assert spent and max(spent) <= 15


def test_charts_leave_out_what_is_filtered_out(visit):
    page = visit("table3.html")
    chart = page.locator('[data-chart="cells"]')
    assert "prior correction" in chart.inner_text()
    page.get_by_role("checkbox", name="outputs and labels").uncheck()
    page.wait_for_function(
        "!$('[data-chart=cells]').textContent.includes('prior correction')"
    )


def test_a_click_on_a_heading_sorts(visit):
    page = visit("table3.html")
    table = page.locator("table.cells").first
    table.get_by_role("button", name="a9a MCR").click()
    values = (
        "rows => rows.map(row => row.cells[2].dataset.v).filter(Boolean).map(Number)"
    )
    found = table.locator("tbody").first.locator("tr").evaluate_all(values)
    assert found == sorted(found) and len(found) > 20
    table.get_by_role("button", name="a9a MCR").press("Enter")
    found = table.locator("tbody").first.locator("tr").evaluate_all(values)
    assert found == sorted(found, reverse=True)
    assert (
        table.locator('th[aria-sort="descending"]').inner_text().strip(" ▾")
        == "a9a MCR ↓"
    )


def test_a_cell_tells_its_runs_and_a_run_everything(visit):
    page = visit("table3.html")
    page.locator('a[href="#balanced/metricopt/a9a/mcr"]').click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading").inner_text() == "MetricOpt (SGD)"
    page.wait_for_function("$$('dialog tbody tr').length === 10")
    assert ".1369" in dialog.inner_text().replace("0.1369", ".1369")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert "#" not in page.url
    page.goto(page.url + "#balanced/metricopt/a9a/mcr")
    page.reload()
    dialog.locator("tbody a").first.click()
    page.wait_for_selector(RUN)
    assert page.locator("#run h1").inner_text() == "metricopt on a9a/mcr"


def test_a_run_is_shown_as_it_was_recorded(visit):
    record = first_record()
    page = visit(f"run.html#{record['digest']}")
    page.wait_for_selector(RUN)
    shown = page.locator("#run").inner_text()
    for seed in record["seeds"].values():
        assert str(seed) in shown
    assert record["data"]["digest"] in shown
    texts = page.locator("#run pre").all_text_contents()
    spec = {k: v for k, v in record["spec"].items() if k != "digest"}
    assert json.loads(texts[0]) == spec
    assert texts[1].startswith(f"git checkout {record['environment']['commit']}\n")
    assert json.loads(texts[1].split("END'\n")[1].partition("\nEND\n")[0]) == spec
    assert json.loads(texts[2]) == record


def test_a_run_is_repeated_by_what_its_page_says(visit, tmp_path):
    path = COMMITTED_RESULTS / "quick" / "local" / "records.jsonl"
    (wanted, *_) = [
        record
        for record in read_jsonl(path)
        if (record.spec.row, record.spec.column) == ("cross-entropy", "digit-8/f1")
    ]
    page = visit(f"run.html#{wanted.digest}")
    page.wait_for_selector(RUN)
    checkout, script = page.locator("#run pre").nth(1).text_content().split("\n", 1)
    assert checkout.startswith("git checkout ")
    # In this checkout, whatever it was recorded with.
    script = script.replace(".venv/bin/python", sys.executable)
    folders = {"PYTHONPATH": str(ROOT), "METRICOPT_CACHE": str(tmp_path / "cache")}
    script = script.replace("PYTHONPATH=. ", "")
    environment = os.environ | folders
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, env=environment, check=True)
    (found,) = tmp_path.glob("repeated/quick/local/*/record.json")
    again = json.loads(found.read_text())
    assert again["spec"]["digest"] == wanted.spec.digest
    assert again["test"]["f1"] == pytest.approx(wanted.test["f1"], abs=0.02)


@pytest.mark.parametrize("address", ["run.html", "run.html#no-digest"])
def test_without_a_run_its_page_says_what_it_is_and_leads_on(visit, address):
    page = visit(address)
    assert page.locator("h1").inner_text() == "One run"
    assert "shows the record of one run" in page.locator("main").inner_text()
    page.locator("#run").get_by_role("link", name="fig4").click()
    assert "fig4.html" in page.url


def test_a_run_that_is_nowhere_is_said_to_be(visit):
    page = visit("run.html#0123456789abcdef")
    page.wait_for_selector(RUN)
    assert page.locator("#run h1").inner_text() == "No such run"


def test_a_curve_tells_its_name_under_the_pointer(visit):
    page = visit("table3.html")
    points = page.locator('[data-chart="curves"] .mark-symbol path')
    points.first.scroll_into_view_if_needed()
    box = points.nth(5).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    page.wait_for_selector("#vg-tooltip-element.visible")
    told = page.locator("#vg-tooltip-element").inner_text()
    labels = page.evaluate("Object.values(metricopt.table.rows).map(row => row[0])")
    assert any(label in told for label in labels)


def test_the_theme_is_switched_and_kept(visit):
    page = visit("index.html")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    button = page.locator("#theme")
    button.click()
    button.click()
    assert button.inner_text() == "Theme: dark"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_the_keyboard_reaches_a_cell(visit):
    page = visit("fig4.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('td') !== null"):
            break
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").is_visible()
