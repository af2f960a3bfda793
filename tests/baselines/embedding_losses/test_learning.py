"""Every loss of embeddings in the training loop: it teaches, and can be continued."""

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, make_embedding_loss
from baselines.training.batches import SampledBatches
from baselines.training.checkpoint import Checkpoint
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from metricopt.process.seeding import make_generator
from metricopt.tasks.sampling import ClassSampler, Split

SIZE = 8


def digits():
    """Digits to learn from, and others to retrieve."""
    pixels, labels = load_digits(return_X_y=True)
    inputs, targets = torch.tensor(pixels / 16).float(), torch.tensor(labels)
    return [Split(inputs[p], targets[p]) for p in (slice(400), slice(400, 1000))]


def digit_run(name, epochs=6):
    (learned, _), network = digits(), nn.Linear(64, SIZE)
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        network.reset_parameters()
    return TrainingRun(
        network,
        make_embedding_loss(name, classes=10, size=SIZE),
        SampledBatches(learned, 40, sampler=ClassSampler(learned.targets, 40, 4)),
        Training(epochs, 0.01, keep_best=False),
        generator=make_generator("digits"),
    )


def recall_at_1(network):
    _, unseen = digits()
    with torch.no_grad():
        unit = nn.functional.normalize(network(unseen.inputs), dim=1)
    nearest = (unit @ unit.T).fill_diagonal_(-2).argmax(1)
    return (unseen.targets[nearest] == unseen.targets).double().mean().item()


@pytest.mark.parametrize("name", list(EMBEDDING_LOSSES))
def test_what_is_learned_holds_for_images_never_seen(name):
    run = digit_run(name)
    start = {key: value.clone() for key, value in run.loss.state_dict().items()}
    before = recall_at_1(run.network)
    train(run)
    assert run.losses[-1] < run.losses[0]
    assert recall_at_1(run.network) > before + 0.05
    for key, value in run.loss.state_dict().items():
        assert not torch.equal(value, start[key])


@pytest.mark.parametrize("name", list(EMBEDDING_LOSSES))
def test_a_killed_training_ends_as_an_undisturbed_one(name, tmp_path):
    def kill(epoch):
        if epoch.number == 2:
            raise KeyboardInterrupt

    ends = []
    for interrupted in (False, True):
        checkpoint = Checkpoint(tmp_path / f"{interrupted}.pt")
        if interrupted:
            with pytest.raises(KeyboardInterrupt):
                train(
                    digit_run(name, 2),
                    checkpoint=checkpoint,
                    hooks=Hooks(kill),
                )
            torch.rand(3)  # what others draw does not matter
        run = digit_run(name, 2)
        train(run, checkpoint=checkpoint)
        ends.append(
            [*run.losses, *run.network.parameters(), *run.loss.state_dict().values()]
        )
    first, second = ends
    assert len(first) >= 4
    assert all(
        torch.equal(torch.as_tensor(x), torch.as_tensor(y))
        for x, y in zip(first, second, strict=True)
    )
