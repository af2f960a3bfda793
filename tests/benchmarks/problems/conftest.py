"""Folders of all tests of pipelines, which keep them away from those of users."""

import pytest
import torch

from benchmarks.problems.pretrained import weights as released


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep data and artifacts of all tests here: each network is trained once."""
    cache = tmp_path_factory.getbasetemp() / "pipelines-cache"
    monkeypatch.setenv("METRICOPT_CACHE", str(cache))
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def own_weights(tmp_path, monkeypatch):
    """Keep released weights of a test in a folder of its own."""
    monkeypatch.setattr(released, "RELEASED", tmp_path / "weights")
