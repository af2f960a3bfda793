"""The connection to a cluster of Ray, and that nobody else can use the cluster.

Whoever reaches a cluster without a token runs any code on all its machines.
"""

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from metricopt.errors import ConfigError

LEAST = (2, 59)
"""Version of Ray."""
MODE = "RAY_AUTH_MODE"
TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
TOKEN_FILE = Path(".ray", "auth_token")
BEYOND_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""What lets Ray replace a loopback address by that of the machine's network."""
REACHED = 10.0
"""Seconds in which a cluster has to answer at all."""
PATIENCE = 120.0
"""Seconds in which a worker has to start."""


@contextmanager
def connected(address: str) -> Iterator[ModuleType]:
    """Connect to a cluster for a while; what is left at the end is stopped.

    Args:
        address: `host:port`, or `auto` for what Ray finds: `RAY_ADDRESS`, or a cluster
            that was started on this machine.

    Yields:
        The module ray.

    Raises:
        ConfigError: if Ray is missing or too old, there is no such cluster, the token
            is not the cluster's, or the cluster asks for none and can be reached from
            other machines.
    """
    ray = _module(address)
    try:
        _check_reachable(address)
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(
            f"expected a cluster of Ray at {address!r} that takes the token of this "
            f"machine, and could not connect ({str(error).splitlines()[0]}); "
            "`ray start --head` starts one"
        ) from error
    try:
        _check_guarded(ray)
        yield ray
    finally:
        ray.shutdown()


def _module(address: str) -> ModuleType:
    """Return the module, imported with what it reads from the environment."""
    if _is_loopback(address.rpartition(":")[0]):
        os.environ.setdefault(BEYOND_LOOPBACK, "0")
    if any(os.environ.get(name) for name in TOKENS) or _token_file().is_file():
        os.environ.setdefault(MODE, "token")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ConfigError(
            "--cluster needs Ray; install it with "
            f"`.venv/bin/python -m pip install 'ray>={LEAST[0]}.{LEAST[1]}'`"
        ) from error
    version = tuple(int(part) for part in ray.__version__.split(".")[:2])
    if version < LEAST:
        raise ConfigError(
            f"--cluster needs Ray {LEAST[0]}.{LEAST[1]} or newer, got {ray.__version__}"
        )
    module: ModuleType = ray
    return module


def _check_reachable(address: str) -> None:
    """Check that somebody listens there; Ray itself would try for minutes.

    Raises:
        OSError: if nobody does.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        where = host.strip("[]"), int(port)
        socket.create_connection(where, timeout=REACHED).close()


def _check_guarded(ray: ModuleType) -> None:
    """Check that a cluster asks for a token, or that no other machine can reach it."""
    hosts = [node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]]
    open_ones = [host for host in hosts if not _is_loopback(host)]
    if not open_ones:
        return
    asked = ray.remote(asks_for_token).options(num_cpus=0).remote()
    if not ray.get(asked, timeout=PATIENCE):
        raise ConfigError(
            f"the cluster at {open_ones[0]} asks for no token, so whoever reaches that "
            "address can run code on it. Stop it, make a token with `ray "
            "get-auth-token --generate`, copy it to every machine, and start the "
            "cluster again"
        )


def asks_for_token() -> bool:
    """Return whether the machine of this worker asks for a token."""
    return os.environ.get(MODE, "").lower() == "token"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _token_file() -> Path:
    return Path.home() / TOKEN_FILE
