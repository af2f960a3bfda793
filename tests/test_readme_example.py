"""The example of README.md runs as it is written, and does what the text says."""

import re
from functools import partial

import torch
from sklearn.metrics import f1_score

from tests.source_tree import ROOT

macro_f1 = partial(f1_score, average="macro")


def test_the_example_runs_and_improves_the_metric_on_data_it_never_saw(capsys):
    (code,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    names = {"__name__": "example"}
    with torch.random.fork_rng():
        exec(compile(code, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    found, (inputs, targets) = names["found"], names["test"]
    assert found.summary() in printed
    assert found.spent.queries <= 20
    after = macro_f1(targets, found.adapter.network(inputs).argmax(1))
    assert f"on test: {after}" in printed
    assert after > macro_f1(targets, found.remove()(inputs).argmax(1)) + 0.1
