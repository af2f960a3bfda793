"""Tier paper of translation, started on archives in the official format."""

import zipfile
from dataclasses import replace

import pytest
import torch

from benchmarks.data.translation.made_sentences import MadeSentences
from benchmarks.data.translation.wmt16 import WMT16EnRo
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.structured.tiers import Structured
from metricopt.metrics.sentences import CorpusBleu
from metricopt.process.seeding import make_generator
from tests.benchmarks.data.translation.test_translation import EUROPARL, SGM, packed

COUNT = 40


@pytest.fixture
def archives(tmp_path, monkeypatch):
    """Archives of made-up sentences with the names of the official files."""
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path))
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    counts = {EUROPARL: COUNT, "SETIMES.en-ro": 1}
    monkeypatch.setattr(WMT16EnRo, "texts", counts)
    monkeypatch.setattr(WMT16EnRo, "expected", (COUNT + 1, 2))
    folder = tmp_path / "wmt16_en_ro"
    folder.mkdir()
    pairs = MadeSentences().load(tmp_path, offline=True).parts["train"]
    sides = list(zip(*pairs[:COUNT], strict=True))
    texts = {
        f"{EUROPARL}.{code}": "\n".join(side)
        for code, side in zip(("en", "ro"), sides, strict=True)
    }
    packed(folder / "training-parallel-ep-v8.tgz", **texts)
    with zipfile.ZipFile(folder / "en-ro.txt.zip", "w") as archive:
        archive.writestr("SETIMES.en-ro.en", "the dog.\n")
        archive.writestr("SETIMES.en-ro.ro", "la cane.\n")
    names = ("src.en", "ref.ro")
    segments = {
        f"test/newstest2016-enro-{name}.sgm": SGM.format(*side[:2])
        for name, side in zip(names, sides, strict=True)
    }
    packed(folder / "test.tgz", **segments)


def test_nat_base_takes_a_step_and_is_judged(archives):
    spec = make_pipeline(Structured.at("sentences", "paper").pipeline(), 0).theta_spec
    assert spec.problem.size == (128, 32_000) and spec.backbone.network == "nat-base"
    # As many pieces as so few sentences have.
    problem = replace(spec.problem, size=(32, 80), observed=0.2)
    spec = replace(spec, problem=problem)
    splits = spec.splits()
    recipe = replace(spec.recipe, batch_size=8)
    network = spec.start(splits).train()
    inputs, targets = next(
        spec.batches(splits, recipe).epoch(make_generator("paper tier"))
    )
    loss = spec.loss()(network(inputs), targets)
    loss.backward()
    slopes = [weight.grad for weight in network.parameters()]
    assert all(slope is not None and slope.isfinite().all() for slope in slopes)
    network.eval()
    with torch.no_grad():
        outputs = network(splits.test.batch(slice(None)))
    # One pass of five lengths; K = 8, and 16 characters of the decided piece.
    assert outputs.shape == (2, 1 + 32, 2, 8 + 8)
    assert 0 <= CorpusBleu().value(outputs, splits.test.targets) < 0.5
