"""One network trained by two processes: what one process would have made of it."""

import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from baselines.losses.contract import make_loss
from baselines.training import team as teams
from baselines.training.batches import PermutedBatches
from baselines.training.loop import TrainingRun
from baselines.training.optimization import Training
from baselines.training.team import Team, joined, team
from metricopt.errors import ConfigError
from metricopt.process.seeding import make_generator
from tests.baselines.toy_images import ToyImages, image_network
from tests.baselines.training.runs import same
from tests.baselines.training.train_together import BATCH, EPOCHS, KINDS, NORMED, main


def by_two(folder, *arguments):
    """Train as a user would, with one program for both processes."""
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "-m"),
            "tests.baselines.training.train_together",
            *(str(folder), *map(str, arguments)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def made(folder, kind, rank=0, size=2):
    return torch.load(folder / f"{kind}-{rank}-of-{size}.pt", weights_only=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What one process made, and two that were killed after two epochs and went on."""
    root = tmp_path_factory.mktemp("together")
    threads = torch.get_num_threads()
    (root / "one").mkdir()
    main(root / "one")
    torch.set_num_threads(threads)
    assert by_two(root / "two", 2).returncode != 0
    assert not list((root / "two").glob("*.pt"))
    done = by_two(root / "two")
    assert done.returncode == 0, done.stderr
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_make_what_one_makes(folders, kind):
    one, two = made(folders / "one", kind, size=1), made(folders / "two", kind)
    assert len(two["losses"]) == EPOCHS
    assert one["losses"][-1] < one["losses"][0]
    assert two["losses"] == pytest.approx(one["losses"], rel=1e-5)
    for name, value in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [*KINDS, NORMED])
def test_both_processes_end_with_the_same_network(folders, kind):
    first, second = (made(folders / "two", kind, rank) for rank in (0, 1))
    assert first["losses"] == second["losses"]
    assert same(first["weights"], second["weights"])


def test_after_a_kill_it_goes_on_to_the_bit(folders):
    whole, resumed = (made(folders / "two", kind) for kind in ("whole", "permuted"))
    assert whole["losses"] == resumed["losses"]
    assert same(whole["weights"], resumed["weights"])


def test_another_number_of_processes_may_not_go_on(folders):
    state = torch.load(folders / "two" / "permuted.ckpt", weights_only=True)
    run = TrainingRun(
        image_network(),
        nn.CrossEntropyLoss(),
        PermutedBatches(ToyImages(), BATCH),
        Training(EPOCHS, 0.05, optimizer="sgd", keep_best=False),
        generator=make_generator("together"),
    )
    with pytest.raises(ConfigError, match=r"2 processes began .* as many, got 1"):
        run.restore(state)


def test_shares_are_equal_and_together_the_whole():
    places = torch.arange(12)
    parts = [places[Team(rank, 3).share(12)] for rank in range(3)]
    assert torch.equal(torch.cat(parts), places)
    with pytest.raises(ConfigError, match="a multiple of the 3 processes, got 16"):
        Team(1, 3).share(16)


def test_a_loss_that_learns_needs_one_process(monkeypatch):
    monkeypatch.setattr("baselines.training.loop.team", lambda: Team(0, 2))
    with pytest.raises(ConfigError, match=r"learns with the network.* got 2"):
        TrainingRun(
            image_network(),
            make_loss("aucpr", classes=4),
            PermutedBatches(ToyImages(), BATCH),
            Training(1, 0.05, keep_best=False),
            generator=make_generator("together"),
        )


def test_alone_nothing_is_done(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as own:
        assert own == team() == Team(0, 1)
        assert own.leads
        network = image_network()
        assert own.together(network) is network
    assert not teams.torch.distributed.is_initialized()
