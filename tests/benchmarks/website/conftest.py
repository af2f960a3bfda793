"""The site of all committed records, built once, and a browser that has no network."""

import os
import shutil

import pytest
from filelock import FileLock
from playwright.sync_api import sync_playwright

from benchmarks.runs.paths import COMMITTED_RESULTS
from benchmarks.website.build import write_site

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NO_NETWORK = ("--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, shared by all test processes."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "site"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            write_site(folder, COMMITTED_RESULTS)
    return folder


@pytest.fixture(scope="session")
def browser():
    """A browser of the system, if there is one."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=NO_NETWORK)
        yield launched
        launched.close()


DRAWN = "Promise.all($$('[data-chart]').map(each => each.drawn)).then(() => true)"
"""Waits for the charts of a page, which are drawn after it is loaded."""


class Visitor:
    """A page of a browser that notes errors and what it asks for."""

    def __init__(self, browser, site, width=1400):
        size = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=size, color_scheme="light")
        self.page, self.site, self.noted = self.context.new_page(), site, []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.noted.append(str(error)))
        self.page.on("request", self._request)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.noted.append(message.text)

    def _request(self, request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.noted.append(request.url)

    def open(self, name):
        self.page.goto(f"file://{self.site}/{name}")
        self.page.evaluate(DRAWN)
        return self.page


@pytest.fixture
def visit(browser, site):
    """Open pages, and fail at any error, warning or request to the network."""
    visitors = []

    def opened(name, **options):
        visitors.append(Visitor(browser, site, **options))
        return visitors[-1].open(name)

    yield opened
    noted = [note for visitor in visitors for note in visitor.noted]
    for visitor in visitors:
        visitor.context.close()
    assert not noted
