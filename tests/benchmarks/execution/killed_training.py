"""A meta-training that dies at its first state on disk, and goes on from it."""

import os
import signal
import subprocess
import sys

import torch

from tests.source_tree import ROOT

DIES = """
import os, signal
import metricopt.checkpoints.loop as loop

write = loop.write_state

def write_and_die(path, key, state):
    write(path, key, state)
    os.kill(os.getpid(), signal.SIGKILL)

loop.write_state = write_and_die
"""


def undisturbed_and_resumed(spec, code, tmp_path, monkeypatch):
    """Train twice, the second time with a kill after the first iteration.

    Args:
        spec: what is meta-trained, with a state on disk after every iteration.
        code: what another process runs to train it.
        tmp_path: holds the cache of the second training.
        monkeypatch: moves the cache there.

    Returns:
        What is kept of the two trainings.
    """
    undisturbed = spec.trained_here()
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "other"))
    command = [sys.executable, "-P", "-c", DIES + code]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    died = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    (state,) = spec.checkpoints.iterdir()
    done, *_ = torch.load(state)["numbers"]
    assert done == 1 and not spec.is_made
    resumed = spec.trained_here()
    assert not spec.checkpoints.exists()
    return undisturbed, resumed
