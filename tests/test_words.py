"""One word for one idea: words that CONTRIBUTING.md replaced are not used again."""

import ast
import re

import pytest

from tests.source_tree import ROOT

REPLACED = {
    "backbone": "theta, or the network",
    "critic": "value function",
    "history": "trace, or git log",
    "school": "network method",
    "taught": "known, or trained by a method",
}
"""Words of prose, and what is said instead. Names in code are another matter."""
AWKWARD = ("that of", "of which", "for which alone", "such as are", "told")
"""What makes a sentence of a page need a second reading."""
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
MODULES = [
    path
    for package in ("metricopt", "baselines", "benchmarks")
    for path in (ROOT / package).rglob("*.py")
]
FENCED = re.compile(r"```.*?```", re.DOTALL)
CODE = re.compile(r"`[^`]*`|<!--.*?-->|^ {4}.*$", re.MULTILINE)
ARGUMENT = re.compile(r"^[\w, ]+:", re.MULTILINE)
"""What a docstring calls an argument is a name in code."""


def page_prose(path):
    """Return what a page says, without code and marks."""
    return CODE.sub("", FENCED.sub("", path.read_text()))


def docstrings(source):
    """Yield the docstrings of a module, without code and names of arguments."""
    inside = ast.stmt | ast.excepthandler | ast.match_case  # expressions hold none
    waiting = [ast.parse(source)]
    for node in waiting:
        waiting += [n for n in ast.iter_child_nodes(node) if isinstance(n, inside)]
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            for line in text.splitlines():
                yield ARGUMENT.sub("", re.sub(r"`[^`]*`", "", line.strip()), count=1)


def found(text, words):
    """Return which words stand in a text, in any case, also in the plural."""
    spaced = " ".join(text.split())
    return [w for w in words if re.search(rf"\b{w}s?\b", spaced, re.IGNORECASE)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_use_the_words_of_the_glossary(path):
    assert found(page_prose(path), [*REPLACED, *AWKWARD]) == []


def test_docstrings_use_the_words_of_the_glossary():
    used = {
        str(path.relative_to(ROOT)): words
        for path in MODULES
        if (words := found("\n".join(docstrings(path.read_text())), REPLACED))
    }
    assert used == {}


def test_a_word_is_seen_in_prose_and_not_in_code():
    source = (
        'def f(history):\n    """Train the Backbones of `taught`.\n\n'
        '    Args:\n        history: past steps.\n    """\n'
    )
    assert found("\n".join(docstrings(source)), REPLACED) == ["backbone"]
    assert found("a cost,\nthat\nof theta", AWKWARD) == ["that of"]
