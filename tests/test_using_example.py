"""The example of docs/using.md runs as it is written, and prints what the page says."""

import re
from functools import partial

import pytest
import torch
from sklearn.metrics import f1_score

from tests.source_tree import ROOT

PAGE = (ROOT / "docs" / "using.md").read_text()
README = (ROOT / "README.md").read_text()
NUMBER = re.compile(r"\d+\.\d+|\d+")
MEASURE = re.compile(r"\d\.\d+")
MEASURED_ANEW = re.compile(r" in [\d.]+ s ")
NEAR = 0.05
macro_f1 = partial(f1_score, average="macro")


def test_the_example_runs_and_prints_what_the_page_shows(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    names = {"__name__": "example"}
    with torch.random.fork_rng():
        exec(compile(code, "using.md", "exec"), names)
    printed = capsys.readouterr().out
    found, (inputs, targets) = names["found"], names["test"]
    assert found.summary() in printed
    assert found.spent.queries <= 20
    # Other processors and numbers of threads round, and so train and choose, otherwise.
    first, second = printed.splitlines()[0], shown.splitlines()[0]
    assert numbers(first) == pytest.approx(numbers(second), abs=NEAR)
    assert wording(first) == wording(second)
    after = macro_f1(targets, found.adapter.network(inputs).argmax(1))
    assert f"on test: {after}" in printed
    before = macro_f1(targets, found.remove()(inputs).argmax(1))
    assert after > before + 0.1
    rises = re.search(r"macro F rises from ([\d.]+) to ([\d.]+)\.\n", PAGE)
    assert [float(each) for each in rises.groups()] == pytest.approx(
        [before, after], abs=NEAR
    )


def test_the_readme_shows_the_same_lines():
    (first,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert first and shown.startswith(first)


def numbers(text):
    return [float(each) for each in MEASURE.findall(MEASURED_ANEW.sub(" ", text))]


def wording(text):
    return NUMBER.sub("N", MEASURED_ANEW.sub(" ", text)).split()
