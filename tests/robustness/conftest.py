"""What is slow and always the same is made once for all tests here."""

from pathlib import Path

import pytest

from tests.robustness.checkpoint_calls import call, told, undisturbed


@pytest.fixture(scope="session")
def finished_call(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict]:
    """What a finished call wrote, and found."""
    path = tmp_path_factory.mktemp("finished") / "queries.txt"
    found = call(checkpoint=path)
    assert told(found) == undisturbed()
    assert found.spent.replayed == 0
    return path.read_bytes(), told(found)


@pytest.fixture
def queries_file(tmp_path: Path) -> Path:
    """Return the name of a checkpoint."""
    return tmp_path / "queries.txt"
