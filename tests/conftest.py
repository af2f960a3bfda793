"""What every test starts from."""

import os
import shutil
import signal
import tempfile
from functools import cache
from importlib.metadata import packages_distributions

import numpy as np
import pytest
import torch


def pytest_configure(config):
    """Share the cores among the test processes: more threads are many times slower.

    Shells start background jobs with interrupts ignored, and tests send some.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        # Every process that tests start would compile all of torch.
        folder = tempfile.mkdtemp()
        os.environ.setdefault("PYTHONPYCACHEPREFIX", folder)
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    cores = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    threads = max(1, cores // workers)
    torch.set_num_threads(threads)
    # For the processes that tests start.
    os.environ["OMP_NUM_THREADS"] = str(threads)


SLOW = (
    "test_pages.py",
    "test_within_bounds.py",
    "test_large_networks.py",
    "test_metricopt_outputs.py",
    "test_evidence.py",
    "test_methods.py",
    "test_columns.py",
    "test_strange_numbers.py",
    "test_kills.py",
    "test_build.py",
    "test_phi_methods.py",
    "test_installed.py",
    "test_tune_groups.py",
    "test_confirmed_call.py",
    "test_docs.py",
    "test_learned_optimizers.py",
)
"""Files that take about a minute each."""


def pytest_collection_modifyitems(items):
    """Begin with slow files, so that no process is left with one at the end."""
    places = {name: place for place, name in enumerate(SLOW)}
    items.sort(key=lambda item: places.get(item.path.name, len(SLOW)))


SEED = 40_961
"""No test asks for it itself, to see that another seed draws something else."""


@pytest.fixture(autouse=True)
def same_start():
    """Give every test the threads of the first, on which sums depend, and one seed.

    So what a test finds is the same whatever ran before it in its process.
    """
    threads = torch.get_num_threads()
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session", autouse=True)
def packages_are_read_once():
    """Every call with a checkpoint reads the metadata of all installed packages."""
    with pytest.MonkeyPatch.context() as patch:
        name = "metricopt.journal.run_facts.packages_distributions"
        patch.setattr(name, cache(packages_distributions))
        yield


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Let the cache be a folder of this test."""
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def shared_cache(tmp_path_factory, monkeypatch):
    """Let the cache be of all that ask for it, and use one thread as the runner does.

    Each data set is parsed, and each network trained, once.
    """
    folder = tmp_path_factory.getbasetemp() / "pipelines-cache"
    monkeypatch.setenv("METRICOPT_CACHE", str(folder))
    torch.set_num_threads(1)
