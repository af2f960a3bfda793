"""What a record says of the machine and the code that made it."""

import platform
import subprocess
from importlib.metadata import distributions, version
from typing import TYPE_CHECKING

from benchmarks.runs.paths import ROOT

if TYPE_CHECKING:
    import torch

CODE = ("metricopt", "baselines", "benchmarks", "requirements.lock")
PACKAGES = ("torch", "gpytorch", "scikit-learn", "numpy", "cma")
WITH_UNITS = ("metricopt.", "baselines.", "benchmarks.")
"""How groups of entry points begin, by which other packages add units."""


def device_name(device: "torch.device") -> str:
    """Return a device as records name it."""
    if device.type == "cuda":
        import torch

        return f"cuda {torch.cuda.get_device_name(device)}"
    return f"{device.type} {platform.machine()}"


def environment() -> dict[str, str]:
    """Return versions and commit, for records."""
    versions = {name: version(name) for name in PACKAGES}
    for package in distributions():
        if any(point.group.startswith(WITH_UNITS) for point in package.entry_points):
            versions[package.name] = package.version
    return versions | {"python": platform.python_version(), "commit": commit()}


def commit() -> str:
    """Return the commit of the code, marked if it was changed since; "" outside git."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        return found.stdout.strip()

    try:
        name = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--", *CODE)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{name}-changed" if changed else name
