"""Features that are kept: bit for bit those of encoding anew, and encoded once."""

from dataclasses import replace

import pytest
import torch

from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.images.pipeline import ImagePipeline
from benchmarks.problems.pretrained import pipeline as module
from benchmarks.problems.pretrained.pipeline import KIND, kept_features
from benchmarks.runs.artifacts import cache_kinds
from metricopt.adapters.film import FiLM
from metricopt.tasks.encoding import UncutSplit, encoded
from metricopt.tasks.sampling import Split
from tests.benchmarks.problems.pipeline_cases import changed, smoke_pipeline, smoke_spec

ROW = ("table1", "cross-entropy")
SPLITS = ("train", "observe", "test")


def assert_same(found, expected):
    assert torch.equal(found.targets, expected.targets)
    assert len(found.features) == len(expected.features)
    for one, other in zip(found.features, expected.features, strict=True):
        assert one.dtype == other.dtype
        assert one.stride() == other.stride()
        assert torch.equal(one, other)


@pytest.fixture
def refused(monkeypatch):
    """Return what makes every further encoding an error."""

    def fail(*arguments):
        raise AssertionError("examples were encoded again")

    return lambda: monkeypatch.setattr(module, "encoded", fail)


@pytest.fixture
def no_features(tmp_path, monkeypatch):
    """Return the trained network of a pipeline, with no features in the cache yet."""
    pretrained = smoke_pipeline(*ROW).pretrained

    def pipeline():
        found = smoke_pipeline(*ROW)
        found.pretrained = pretrained
        return found

    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    return pipeline


def test_a_second_pipeline_reads_what_the_first_has_encoded(no_features, refused):
    first = no_features()
    for name in SPLITS:
        expected = encoded(first.adapter, first.splits.parts[name])
        assert_same(first.encoded(name), expected)
    assert cache_kinds()[KIND][0] == 3
    refused()
    second = no_features()
    for name in SPLITS:
        assert_same(second.encoded(name), first.encoded(name))


@pytest.mark.parametrize("last", [True, False])
def test_channels_are_not_last_in_memory(tmp_path, monkeypatch, last, refused):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path))
    inputs = torch.randn(20, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    order = torch.channels_last if last else torch.contiguous_format
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 5, 3),
        torch.nn.BatchNorm2d(5),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(5, 2),
    ).to(memory_format=order)
    inputs = inputs.to(memory_format=order)
    adapter = FiLM(network, inputs[:2], form="direct")
    examples = Split(inputs, torch.arange(20) % 2)
    expected = encoded(adapter, examples)
    (features,) = expected.features
    assert features.is_contiguous()
    assert_same(kept_features(adapter, examples, {"name": "a"}), expected)
    refused()
    assert_same(kept_features(adapter, examples, {"name": "a"}), expected)
    with pytest.raises(AssertionError, match="encoded again"):
        kept_features(adapter, examples, {"name": "b"})


def test_threads_decide_the_last_bits_and_so_the_file(no_features, refused):
    no_features().encoded("observe")
    refused()
    torch.set_num_threads(2)
    with pytest.raises(AssertionError, match="encoded again"):
        no_features().encoded("observe")


def test_runs_that_differ_elsewhere_share_features(no_features, refused):
    first = no_features()
    made = first.encoded("train")
    refused()
    spec = changed(smoke_spec(*ROW), "finetune", batch_size=50)
    other = make_pipeline(spec.pipeline, 0)
    other.pretrained = first.pretrained
    assert other.key != first.key
    assert_same(other.encoded("train"), made)


@pytest.mark.parametrize(
    ("part", "settings"),
    [("finetune", {"examples": 400}), ("adapter", {"sites": ["1"]})],
)
def test_what_decides_the_features_decides_the_file(
    no_features, refused, part, settings
):
    pretrained = no_features().pretrained
    no_features().encoded("train")
    refused()
    spec = changed(smoke_spec(*ROW), part, **settings)
    other = make_pipeline(spec.pipeline, 0)
    other.pretrained = pretrained
    with pytest.raises(AssertionError, match="encoded again"):
        other.encoded("train")


def test_images_before_a_network_that_cannot_be_cut_are_not_kept(no_features):
    pipeline = no_features()
    pretrained = pipeline.pretrained

    class Whole(torch.nn.Module):
        """The network behind a question that no trace can hold."""

        def __init__(self):
            super().__init__()
            self.network = pretrained.network

        def forward(self, inputs):
            if inputs.abs().sum() == 0:
                return self.network(inputs) * 0
            return self.network(inputs)

    pipeline.pretrained = replace(pretrained, network=Whole())
    assert isinstance(pipeline, ImagePipeline) and not pipeline.adapter.is_cut
    for name in SPLITS:
        found = pipeline.encoded(name)
        assert isinstance(found, UncutSplit) and not found.kept
        assert found.examples is pipeline.splits.parts[name]
    assert cache_kinds()[KIND] == (0, 0)
