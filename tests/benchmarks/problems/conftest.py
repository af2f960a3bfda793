"""One cache for all tests of pipelines: each network is trained once."""

import pytest
import torch


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep parsed data and artifacts of all tests here, and nowhere else."""
    cache = tmp_path_factory.getbasetemp() / "pipelines-cache"
    monkeypatch.setenv("METRICOPT_CACHE", str(cache))
    torch.set_num_threads(1)
