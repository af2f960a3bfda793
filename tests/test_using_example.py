"""The example of README.md runs as pasted, and docs/using.md goes on with it."""

import csv
import json
import re

import pytest
import torch

from tests.source_tree import ROOT

README = (ROOT / "README.md").read_text()
EXAMPLES = (ROOT / "docs" / "examples.md").read_text()
USING = (ROOT / "docs" / "using.md").read_text()
FEW_SHOT = (ROOT / "docs" / "few-shot.md").read_text()
WHEN_NOT = (ROOT / "docs" / "when-not-to-use-it.md").read_text()
NOTEBOOK = json.loads((ROOT / "docs" / "example.ipynb").read_text())
NUMBER = re.compile(r"\d+\.\d+|\d+")
MEASURE = re.compile(r"\d\.\d+")
MEASURED_ANEW = re.compile(r" in [\d.]+ s ")
NEAR = 0.05


def test_the_examples_run_and_print_what_the_pages_show(capsys):
    names = {"__name__": "example"}
    with torch.random.fork_rng():
        for code in notebook_code():
            exec(compile(code, "example.ipynb", "exec"), names)
        exec(compile(only(USING, "python"), "using.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    found, (inputs, targets) = names["found"], names["test"]
    assert found.summary().splitlines() == printed[:-1]
    assert found.spent.queries <= 20
    # Other processors and numbers of threads round, and so train and choose, otherwise.
    for line, shown in (
        (printed[0], only(README, "text").splitlines()[0]),
        (printed[-1], only(USING, "text").strip()),
    ):
        assert wording(line) == wording(shown)
        assert numbers(line) == pytest.approx(numbers(shown), abs=NEAR)
    before, after = (macro_f1(names, m) for m in (found.remove(), found.merge()))
    assert (names["before"], names["after"]) == pytest.approx((before, after))
    assert after > before + 0.03
    assert len(inputs) == len(targets) == 599


def test_the_notebook_is_the_example_of_the_readme():
    assert "\n\n".join(notebook_code()) + "\n" == only(README, "python")
    (outputs,) = [cell["outputs"] for cell in NOTEBOOK["cells"] if cell.get("outputs")]
    assert "".join(outputs[0]["text"]) == only(README, "text")
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)


def test_the_page_of_examples_writes_every_query():
    names = {"__name__": "example"}
    exec(compile(only(EXAMPLES, "py"), "examples.md", "exec"), names)
    with names["path"].open() as stream:
        rows = list(csv.DictReader(stream))
    values = names["tuned"].values.tolist()
    assert [float(row["value"]) for row in rows] == pytest.approx(values)
    assert rows[-1]["query"] == str(names["tuned"].spent.queries)


def test_the_obvious_stands_where_the_page_says(capsys):
    code = only(WHEN_NOT, "python").replace("range(5)", "range(1)")
    with torch.random.fork_rng():
        exec(compile(code, "when-not-to-use-it.md", "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out.splitlines()
    shown = only(WHEN_NOT, "text").splitlines()
    found, told = (
        {line[:29].strip(): float(line[29:]) for line in lines}
        for lines in (printed, shown)
    )
    assert found.keys() == told.keys()
    # One network of five, so the order of the others may be another one.
    assert min(found, key=found.get) == "as trained"
    assert found == pytest.approx(told, abs=0.06)


def test_a_learned_geometry_learns_a_sine_in_fewer_meta_steps(capsys):
    code, names = only(FEW_SHOT, "python"), {}
    _, loop = code.split("settings = ")
    assert len([line for line in loop.splitlines() if line]) <= 20
    with torch.random.fork_rng():
        exec(compile(code, "few-shot.md", "exec"), names)
    found, shown = (
        dict(line.split() for line in text.splitlines())
        for text in (capsys.readouterr().out, only(FEW_SHOT, "text"))
    )
    assert list(found) == list(shown) == ["Identity", "BlockIAF"]
    assert float(found["BlockIAF"]) < float(found["Identity"]) / 2
    for name, error in found.items():
        assert float(error) == pytest.approx(float(shown[name]), rel=0.2)
    assert names["predicted"].shape == (10, 1)


def test_an_optimizer_in_a_geometry_ends_where_both_curvatures_are_alike():
    names = {}
    exec(compile(only(FEW_SHOT, "py"), "few-shot.md", "exec"), names)
    phi, health = names["phi"], names["optimizer"].health
    # Every coordinate is halved ten times; without the geometry the second diverges.
    torch.testing.assert_close(phi.detach(), torch.full((3, 2), 0.5**10))
    assert health.fallback_share == 0
    assert 0 < health.cosine < 1


def notebook_code():
    """Return the cells of code, in order."""
    cells = NOTEBOOK["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


def only(page, language):
    """Return the one block of a language on a page."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return block


def macro_f1(names, model):
    inputs, targets = names["test"]
    return names["f1_score"](targets, model(inputs).argmax(1), average="macro")


def numbers(text):
    return [float(each) for each in MEASURE.findall(MEASURED_ANEW.sub(" ", text))]


def wording(text):
    return NUMBER.sub("N", MEASURED_ANEW.sub(" ", text)).split()
