"""How Sphinx makes the pages and the reference; CONTRIBUTING.md has the command.

The source folder is the whole checkout, so that a link works here as it does in git.
"""

import importlib
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # a checkout is not installed

import metricopt  # noqa: E402

FACES = (
    *("metricopt", "metricopt.detection", "metricopt.fewshot", "metricopt.geometry"),
    *("metricopt.learned_optimizers", "metricopt.sklearn"),
)
"""Modules that users import from; `docs/api` has a page for each."""

project, author = "metricopt", "The metricopt authors"
copyright = f"2026, {author}"
version = release = metricopt.__version__
root_doc = "README"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
include_patterns = ["*.md", "docs/**", "results/*/local/*.md"]
exclude_patterns = [
    *(".*", "build", "dist", "baselines", "benchmarks", "metricopt", "tests"),
    *("results/own", "results/weights"),
]

myst_heading_anchors = 3
myst_fence_as_directive = []
autodoc_default_options = {"members": True, "imported-members": True}
napoleon_use_ivar = True
autodoc_member_order = "groupwise"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
# A name in single backticks links to what has it here, and is code otherwise.
default_role = "py:obj"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"metricopt {version}"
html_show_copyright = False
# Summaries of what was found are fetched, which a browser refuses to a file.
html_show_search_summary = False
html_copy_source = False

TREE = """

```{{toctree}}
:hidden:
:glob:
:caption: {caption}

{pages}
```
"""
CONTENTS = {
    root_doc: {
        "Use": (
            *("docs/using", "docs/examples", "docs/when-not-to-use-it"),
            *("docs/few-shot", "docs/learned-optimizers"),
        ),
        "Reference": ("docs/api/metricopt", "docs/api/*"),
        "Results": (
            *("docs/results", "docs/summary", "docs/findings", "docs/reproducing"),
            "docs/scale",
        ),
        "Project": ("CONTRIBUTING", "CHANGELOG", "SECURITY"),
    },
    "docs/results": {"Tables": ("/results/*/local/*",)},
}
"""Pages below a page by their heading, which pages do not show in git."""


def add_contents(app, docname, source):
    """Give a page its table of contents."""
    for caption, pages in CONTENTS.get(docname, {}).items():
        source[0] += TREE.format(caption=caption, pages="\n".join(pages))


def add_index(app, exception):
    """Let the folder open at its first page."""
    if exception is None and app.builder.format == "html":
        shutil.copy(
            Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html")
        )


def load_late_names():
    """Load what modules offer on first access, which autodoc does not see otherwise."""
    for face in map(importlib.import_module, FACES):
        for name in face.__all__:
            setattr(face, name, getattr(face, name))


def setup(app):
    """Register what is done beside Sphinx's own steps."""
    load_late_names()
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_index)
