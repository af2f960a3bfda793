"""A cluster of Ray on this machine: a head without cores, and workers with one each.

Every worker has a cache of its own, as if it were another machine.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.runs.paths import ROOT

TOKEN = "0123456789abcdef0123456789abcdef"
RAY = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block")
SMALL = ("--object-store-memory", "100000000", "--disable-usage-stats")
BEGIN = 60.0


@dataclass
class LocalCluster:
    """A cluster that runs.

    Attributes:
        folder: sockets and logs; its name is short, since sockets need that.
        port: port of the head.
        processes: the head and the workers, each the leader of a process group.
    """

    folder: Path
    port: int
    processes: list = field(default_factory=list)

    @property
    def address(self):
        """The address, as `--cluster` takes it."""
        return f"127.0.0.1:{self.port}"

    def cache(self, number):
        """Return the cache of a worker, the first of which is 1."""
        return self.folder / f"cache{number}"

    def start(self, *arguments, **variables):
        """Start a head or a worker."""
        log = self.folder / f"{len(self.processes)}.log"
        environment = environment_with_token() | variables
        with log.open("ab") as file:
            process = subprocess.Popen(
                [*RAY, *SMALL, *arguments],
                env=environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def add_worker(self):
        """Start a worker with one core and a cache of its own."""
        cache = str(self.cache(len(self.processes)))
        arguments = ("--address", self.address, "--num-cpus", "1")
        return self.start(*arguments, METRICOPT_CACHE=cache)

    def workers(self):
        """Return the ids of the processes that make runs, by the caches they use."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                title = (path / "cmdline").read_bytes().split(b"\0")[0].decode()
                variables = (path / "environ").read_bytes().decode(errors="replace")
                own = f"METRICOPT_CACHE={self.folder}" in variables
                if own and title.startswith("ray::") and "Agent" not in title:
                    found[int(path.name)] = title
        return found

    def forget(self):
        """Remove what all workers keep."""
        for number in range(len(self.processes) + 1):
            shutil.rmtree(self.cache(number), ignore_errors=True)

    def stop(self):
        """End all processes."""
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def environment_with_token():
    """Return variables with which Ray asks for our token, and finds our code."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "PYTHONPATH": path.rstrip(os.pathsep),
        "OMP_NUM_THREADS": "1",
    }


@contextmanager
def local_cluster(workers, port, *, loopback=False):
    """Start a cluster, and end it.

    Args:
        workers: number of workers with one core each.
        port: port of the head.
        loopback: whether it cannot be reached from other machines. Then it has no
            token, and Ray lets it be one machine, with as many cores.
    """
    folder = Path(tempfile.mkdtemp(prefix="mo", dir="/tmp"))
    cluster = LocalCluster(folder, port)
    head = ("--head", "--port", str(port), "--temp-dir", str(folder))
    head += ("--include-dashboard", "false")
    variables = {"METRICOPT_CACHE": str(cluster.cache(0))}
    if loopback:
        variables |= {
            "RAY_AUTH_MODE": "disabled",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        }
    cores = workers if loopback else 0
    try:
        cluster.start(*head, "--num-cpus", str(cores), **variables)
        wait_for(folder / "0.log", "Ray runtime started")
        for number in range(1, 1 if loopback else workers + 1):
            # One after the other: nodes that start at once may miss each other.
            cluster.add_worker()
            wait_for(folder / f"{number}.log", "Ray runtime started")
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(log, text):
    """Wait until a log holds a text."""
    for _ in range(int(BEGIN / 0.1)):
        if text in log.read_text(errors="replace"):
            return
        time.sleep(0.1)
    raise AssertionError(f"no {text!r} after {BEGIN:.0f} s: {log.read_text()[-2000:]}")
