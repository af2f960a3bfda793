"""One cache for all tests of arms, and one thread as in the runner."""

import pytest
import torch


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Share networks and parsed data with the tests of pipelines, and nothing else."""
    cache = tmp_path_factory.getbasetemp() / "pipelines-cache"
    monkeypatch.setenv("METRICOPT_CACHE", str(cache))
    torch.set_num_threads(1)
