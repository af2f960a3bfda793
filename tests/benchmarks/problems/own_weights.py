"""Released weights of tests lie in a folder of their own."""

import pytest

from benchmarks.problems.pretrained import released


@pytest.fixture(autouse=True)
def own_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(released, "RELEASED", tmp_path / "weights")
