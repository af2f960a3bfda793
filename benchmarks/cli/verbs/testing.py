"""The verb `test`: the tests of the project."""

import subprocess
import sys
from argparse import Namespace

from benchmarks.runs.paths import ROOT


def run(options: Namespace) -> int:
    """Run the tests in the checkout and return their exit code."""
    return subprocess.run([sys.executable, "-m", "pytest"], cwd=ROOT).returncode
