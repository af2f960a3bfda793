"""Folders of all tests of pipelines, which keep them away from those of users."""

import pytest

from benchmarks.problems.pretrained import weights as released


@pytest.fixture(autouse=True)
def folders(shared_cache, tmp_path, monkeypatch):
    """Share the cache, and keep released weights of a test in a folder of its own."""
    monkeypatch.setattr(released, "RELEASED", tmp_path / "weights")
