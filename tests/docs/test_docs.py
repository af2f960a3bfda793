"""The pages and the reference, built as CONTRIBUTING.md says: complete, all links."""

import importlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys

import pytest
from sphinx.util.inventory import InventoryFile

from tests.docs.links import broken_links
from tests.source_tree import ROOT
from tests.test_rooms import FACES


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """The folder of the built pages; a warning of Sphinx fails."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (command,) = re.findall(r"\.venv/bin/python (-m sphinx .+) build/docs\n", text)
    folder = tmp_path_factory.mktemp("docs") / "html"
    built = subprocess.run(
        [sys.executable, *command.split(), folder],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert "-W" in command.split()
    return folder


def test_the_reference_names_every_public_symbol(html):
    with (html / "objects.inv").open("rb") as file:
        kinds = InventoryFile.load(file, "", lambda base, name: name)
    named = {name for kind in kinds if kind.startswith("py:") for name in kinds[kind]}
    for face in FACES:
        offered = importlib.import_module(face).__all__
        assert not [name for name in offered if f"{face}.{name}" not in named]
    assert "metricopt.finetune" in named
    assert "metricopt.fine_tune" not in named


def test_every_page_is_in_the_contents(html):
    contents = runpy.run_path(str(ROOT / "docs" / "conf.py"))["CONTENTS"]
    listed = {name for part in contents["README"].values() for name in part}
    pages = {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")}
    assert pages <= listed
    assert len(list(html.glob("results/*/local/table.html"))) > 15


def test_all_links_lead_somewhere(html):
    assert broken_links(html) == []
    assert len(list(html.rglob("*.html"))) > 40


def test_what_leads_nowhere_is_named(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text('<h1 id="here">B</h1><a name="old"></a>')
    links = (
        *("sub/b.html", "sub/b.html#here", "sub/b.html#old", "#", "https://a.org/x"),
        *("sub/c.html", "sub/b.html#there", "#nowhere", "http://a.org", "sub"),
    )
    (tmp_path / "a.html").write_text("".join(f'<a href="{x}">x</a>' for x in links))
    (tmp_path / "picture.html").write_text('<img src="no.png"><script src="no.js">')
    assert sorted(broken_links(tmp_path)) == [
        "a.html: #nowhere",
        "a.html: http://a.org",
        "a.html: sub",
        "a.html: sub/b.html#there",
        "a.html: sub/c.html",
        "picture.html: no.js",
        "picture.html: no.png",
    ]


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def test_the_search_knows_the_names(html):
    """Its index is a script, which a page opened from a file may load."""
    text = (html / "searchindex.js").read_text()
    assert text.startswith("Search.setIndex(")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip(";\n)"))
    assert "finetun" in index["terms"]
    assert 'src="searchindex.js"' in (html / "search.html").read_text()


@pytest.mark.skipif(BROWSER is None, reason="needs a browser of the system")
def test_the_search_works_from_a_file(html):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--virtual-time-budget=8000"]
    page = f"{(html / 'search.html').as_uri()}?q=make_metric"
    found = subprocess.run([*command, page], capture_output=True, text=True, timeout=60)
    assert "Search finished" in found.stdout
    assert "docs/api/metricopt.html#metricopt.make_metric" in found.stdout
