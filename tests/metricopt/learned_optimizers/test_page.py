"""The example of docs/learned-optimizers.md runs as pasted."""

import re

import pytest
import torch

from tests.source_tree import ROOT

PAGE = (ROOT / "docs" / "learned-optimizers.md").read_text()


def only(language):
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return block


def losses(text):
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in text.splitlines())
    }


def test_it_prints_what_the_page_shows_and_beats_adam(capsys):
    code = compile(only("python"), "learned-optimizers.md", "exec")
    with torch.random.fork_rng():
        exec(code, {"__name__": "example"})
    found, shown = losses(capsys.readouterr().out), losses(only("text"))
    assert list(found) == list(shown)
    for name, loss in found.items():
        assert loss == pytest.approx(shown[name], rel=0.03)
    assert found["learned"] < min(v for name, v in found.items() if name != "learned")
