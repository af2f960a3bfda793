"""Who may use a cluster, and what is said where there is none."""

import os
import socket
import sys
from types import SimpleNamespace

import pytest

from benchmarks.execution import connection
from benchmarks.execution.connection import asks_for_token, connected
from metricopt.errors import ConfigError


class FakeRay:
    """As much of Ray as a connection asks for, with nodes at some addresses."""

    __version__ = "2.60.0"
    exceptions = SimpleNamespace(RayError=KeyError)

    def __init__(self, *hosts, error=None):
        self.hosts, self.error, self.open = hosts, error, False

    def init(self, **options):
        self.options = options
        if self.error:
            raise self.error
        self.open = True

    def shutdown(self):
        self.open = False

    def nodes(self):
        return [{"NodeManagerAddress": h, "Alive": h != "gone"} for h in self.hosts]

    def remote(self, work):
        task = SimpleNamespace(remote=work)
        return SimpleNamespace(options=lambda **options: task)

    def get(self, found, timeout):
        return found


@pytest.fixture
def reached(monkeypatch):
    """Let somebody listen at every address."""
    monkeypatch.setattr(connection, "_check_reachable", str)


@pytest.fixture(autouse=True)
def no_token(tmp_path, monkeypatch):
    for name in (connection.MODE, connection.BEYOND_LOOPBACK, *connection.TOKENS):
        # Set first, so that it is unset again after the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def put(monkeypatch, ray):
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray


@pytest.mark.usefixtures("reached")
def test_a_cluster_without_token_is_refused_and_left(monkeypatch):
    ray = put(monkeypatch, FakeRay("127.0.0.1", "10.0.0.7", "gone"))
    with pytest.raises(ConfigError) as caught, connected("10.0.0.7:6379"):
        raise AssertionError("nothing may run there")
    assert str(caught.value).startswith(
        "the cluster at 10.0.0.7 asks for no token, so whoever reaches that address can"
    )
    assert not ray.open


@pytest.mark.usefixtures("reached")
def test_a_cluster_that_asks_for_a_token_is_used(monkeypatch):
    ray = put(monkeypatch, FakeRay("10.0.0.7"))
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    with connected("10.0.0.7:6379") as found:
        assert found is ray and ray.open
        # A token that is there is used without being asked for.
        assert asks_for_token()
    assert not ray.open
    assert ray.options["address"] == "10.0.0.7:6379"


def test_a_token_file_is_enough_and_what_the_user_says_stays(monkeypatch, tmp_path):
    put(monkeypatch, FakeRay("10.0.0.7"))
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("secret")
    with connected("auto"):
        assert os.environ[connection.MODE] == "token"
    monkeypatch.setenv(connection.MODE, "disabled")
    with pytest.raises(ConfigError, match="asks for no token"), connected("auto"):
        raise AssertionError("nothing may run there")


@pytest.mark.usefixtures("reached")
@pytest.mark.parametrize("address", ["127.0.0.1:6379", "localhost:6379", "[::1]:6379"])
def test_on_loopback_no_token_is_needed(monkeypatch, address):
    ray = put(monkeypatch, FakeRay("127.0.0.1"))
    with connected(address):
        assert ray.open and not asks_for_token()
    # Else Ray would take the address of the network instead.
    assert os.environ[connection.BEYOND_LOOPBACK] == "0"


def test_no_cluster_is_one_sentence(monkeypatch):
    put(monkeypatch, FakeRay(error=ConnectionError("no such cluster\nand more")))
    with pytest.raises(ConfigError) as caught, connected("auto"):
        raise AssertionError("nothing may run there")
    assert str(caught.value) == (
        "expected a cluster of Ray at 'auto' that takes the token of this machine, and "
        "could not connect (no such cluster); `ray start --head` starts one"
    )


def test_an_address_where_nobody_listens_is_answered_at_once(monkeypatch):
    ray = put(monkeypatch, FakeRay("127.0.0.1"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        with connected(f"{host}:{port}"):
            assert ray.open
    with (
        pytest.raises(ConfigError, match=r"could not connect \(.*refused"),
        connected(f"{host}:{port}"),
    ):
        raise AssertionError("nobody listens")


def test_no_ray_and_an_old_one_are_one_sentence(monkeypatch):
    put(monkeypatch, None)
    with pytest.raises(ConfigError, match="needs Ray; install it with"), connected("a"):
        raise AssertionError("there is no Ray")
    ray = put(monkeypatch, FakeRay())
    ray.__version__ = "2.50.1"
    with (
        pytest.raises(ConfigError, match=r"needs Ray 2\.59 or newer, got 2\.50\.1"),
        connected("auto"),
    ):
        raise AssertionError("it is too old")
