"""Runs on a cluster of Ray: the same table, whoever is killed meanwhile.

`python -m tests.benchmarks.execution.cluster_kills` does more of it, and two machines.
"""

import importlib.util
import os
import signal
import sys
import time
from random import Random

import pytest

from tests.benchmarks.execution.cluster_kills import disturbed_run
from tests.benchmarks.execution.kills import Sandbox, differences, finish
from tests.benchmarks.execution.local_cluster import local_cluster

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray"
)
TABLE = (
    *(sys.executable, "-P", "-m", "tests.benchmarks.report.small_table", "table3"),
    *("--tier", "smoke", "--replicates", "1"),
)


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(2, 6421, loopback=True) as found:
        yield found


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The table of one process, with nothing disturbed."""
    site = Sandbox(tmp_path_factory.mktemp("calm"))
    with pytest.MonkeyPatch.context() as patch:
        prepare(patch)
        finish((*TABLE, "--workers", "1"), site)
    return site


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    prepare(monkeypatch)


def prepare(patch):
    """Let the commands that are started find our code, and have one thread."""
    path = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    patch.setenv("PYTHONPATH", path)
    patch.setenv("OMP_NUM_THREADS", "1")
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        patch.delenv(name, raising=False)


def busy(cluster):
    return [pid for pid, title in cluster.workers().items() if "IDLE" not in title]


def wait_until(happened):
    for _ in range(600):
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within 60 s")


def test_a_cluster_makes_the_table_of_one_process(cluster, calm, tmp_path):
    site = Sandbox(tmp_path)
    finish((*TABLE, "--cluster", cluster.address), site)
    assert differences(calm, site) == []
    assert len(list(site.store.rglob("record.json"))) == 4
    # The network is made once, and so is what two rows prepare; the driver makes none.
    made = cluster.cache(0) / "artifacts"
    assert len(list((made / "theta").glob("*.safetensors"))) == 1
    assert not (site.folder / "cache" / "artifacts").exists()


def test_a_killed_worker_and_a_killed_command_change_nothing(cluster, calm, tmp_path):
    site, kinds = Sandbox(tmp_path), ["worker", "driver", "artifacts", "worker"]
    command = (*TABLE, "--cluster", cluster.address, "--fresh")
    for _ in range(9):
        disturbed_run(command, site, cluster, kinds, Random(5), pause=(0.0, 0.5))
        if not kinds:
            break
    assert kinds == []
    assert differences(calm, site) == []


def test_an_interrupt_leaves_nothing_running(cluster, tmp_path):
    site = Sandbox(tmp_path)
    process = site.start((*TABLE, "--cluster", cluster.address))
    wait_until(lambda: busy(cluster) or process.poll() is not None)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert site.log.read_text().endswith(
        "stopped; finished runs are kept, the same command goes on\n"
    )
    wait_until(lambda: not busy(cluster))
    assert not list(site.results.rglob("table.md"))
