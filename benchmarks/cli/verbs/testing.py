"""The verb `test`: the tests of the project, a process for every core."""

import subprocess
import sys
from argparse import Namespace

from benchmarks.runs.paths import ROOT


def run(options: Namespace) -> int:
    """Run the tests in the checkout and return their exit code."""
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile"]
    # In the order of tests/conftest.py, which begins with slow files.
    command.append("--no-loadscope-reorder")
    return subprocess.run(command, cwd=ROOT).returncode
