"""The training of image networks: rates, resumption with the same numbers, bfloat16."""

import pytest
import torch
from torch import nn

from baselines.losses.contract import make_loss
from baselines.training.batches import PermutedBatches
from baselines.training.loop import Hooks, TrainingRun, train
from benchmarks.networks.contract import build_network
from benchmarks.problems.images.images import Images, channel_statistics
from benchmarks.problems.images.settings import ImageTraining
from benchmarks.problems.pretrained.weights import predicted, weights_digest
from metricopt.errors import ConfigError, DivergedError
from metricopt.losses.contract import RowLoss

RECIPE = ImageTraining(epochs=3, batch_size=16, rate=0.05)


def toy_images() -> Images:
    generator = torch.Generator().manual_seed(0)
    targets = torch.arange(4).repeat(16)
    pixels = torch.randint(60, (64, 8, 8, 1), generator=generator, dtype=torch.uint8)
    pixels[..., 0] += (40 * targets).to(torch.uint8)[:, None, None]
    return Images(pixels, targets, *channel_statistics(pixels))


def linear_head(features: int) -> nn.Module:
    return nn.Linear(features, 4)


def new_run(recipe: ImageTraining = RECIPE, loss: str = "cross-entropy") -> TrainingRun:
    return TrainingRun(
        build_network("digit-net", linear_head, 1),
        make_loss(loss, classes=4),
        PermutedBatches(toy_images(), recipe.batch_size),
        recipe.training(),
        generator=torch.Generator().manual_seed(5),
    )


def final_state(run: TrainingRun) -> str:
    learned = run.loss.state_dict() if isinstance(run.loss, nn.Module) else {}
    return weights_digest(run.network.state_dict() | learned)


def test_training_learns(tmp_path):
    run = new_run(ImageTraining(epochs=12, batch_size=16, rate=0.05))
    reports = []
    train(run, hooks=Hooks(reports.append), checkpoint=tmp_path / "c.pt", key="k")
    assert [report.number for report in reports] == list(range(1, 13))
    assert [report.train_loss for report in reports] == run.losses
    assert run.losses[-1] < 0.6 * run.losses[0]
    images = toy_images()
    called = predicted(run.network, images, 500).argmax(1)
    assert (called != images.targets).float().mean() < 0.3
    # The last epoch is kept: nothing is observed.
    assert run.best.epoch == 12


@pytest.mark.parametrize("loss", ["cross-entropy", "aucpr"])
def test_a_killed_training_ends_as_an_undisturbed_one(tmp_path, loss):
    undisturbed = new_run(loss=loss)
    train(undisturbed, checkpoint=tmp_path / "a.pt", key="k")

    def killed(report):
        if report.number == 2:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "b.pt"
    with pytest.raises(KeyboardInterrupt):
        train(new_run(loss=loss), hooks=Hooks(killed), checkpoint=checkpoint, key="k")
    assert checkpoint.exists()
    again = new_run(loss=loss)
    train(again, checkpoint=checkpoint, key="k")
    assert final_state(again) == final_state(undisturbed)
    assert again.losses == undisturbed.losses


def test_a_checkpoint_of_another_network_is_not_gone_on_from(tmp_path):
    checkpoint = tmp_path / "c.pt"
    ended = new_run()
    train(ended, checkpoint=checkpoint, key="other")
    run, reports = new_run(), []
    train(run, hooks=Hooks(reports.append), checkpoint=checkpoint, key="mine")
    assert (run.epoch, len(reports)) == (3, 3)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn"])
def test_a_torn_checkpoint_is_begun_anew(tmp_path, content):
    checkpoint = tmp_path / "c.pt"
    checkpoint.write_bytes(content)
    run, reports = new_run(), []
    with pytest.warns(UserWarning, match="is damaged, the training begins anew"):
        train(run, hooks=Hooks(reports.append), checkpoint=checkpoint, key="k")
    assert (run.epoch, len(reports)) == (3, 3)


def test_the_state_of_another_recipe_is_refused():
    other = new_run(ImageTraining(epochs=4, batch_size=16, rate=0.05))
    with pytest.raises(ConfigError, match=r"expected the state of .*'epochs': 3"):
        new_run().restore(other.state())


def rates_of(run):
    rates = []
    for _ in range(run.steps):
        rates.append(run.optimizer.param_groups[0]["lr"])
        run.optimizer.step()
        run.rates.step()
    return rates


def test_one_cycle_rises_for_a_quarter_and_ends_near_zero():
    rates = rates_of(new_run(ImageTraining(epochs=10, batch_size=16, rate=0.4)))
    assert len(rates) == 40
    assert max(rates) == pytest.approx(0.4)
    assert rates.index(max(rates)) == pytest.approx(len(rates) / 4, abs=1)
    assert rates[-1] < 1e-3


def test_steps_divide_by_ten_at_half_and_three_quarters():
    recipe = ImageTraining(epochs=8, batch_size=16, rate=0.1, schedule="steps")
    rates = [round(rate, 6) for rate in rates_of(new_run(recipe))]
    assert rates == [0.1] * 16 + [0.01] * 8 + [0.001] * 8


class Annealed(RowLoss):
    """Cross-entropy that notes before which steps it was told so."""

    def __init__(self):
        super().__init__(classes=4)
        self.seen = []

    def before_step(self, step, steps):
        self.seen.append((step, steps))

    def _row_losses(self, outputs, targets):
        losses = nn.functional.cross_entropy(
            outputs.flatten(0, 1), targets.flatten(), reduction="none"
        )
        return losses.view(targets.shape).mean(1)


def test_the_loss_is_annealed_before_every_step():
    run, loss = new_run(), Annealed()
    run.loss = loss
    run.run_epoch()
    run.run_epoch()
    assert loss.seen == [(step, 12) for step in range(8)]


def test_what_a_loss_learns_does_not_decay():
    groups = new_run(loss="aucpr").optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [5e-4, 0.0]
    assert len(new_run().optimizer.param_groups) == 1


def test_a_loss_that_is_not_finite_stops_the_training():
    run = new_run()
    before = final_state(run)
    run.loss = lambda outputs, targets: outputs.sum() * float("nan")
    with pytest.raises(DivergedError, match="became nan in epoch 1 of 3"):
        run.run_epoch()
    assert final_state(run) == before


def test_too_few_images_for_a_mini_batch_are_refused():
    with pytest.raises(ConfigError, match=r"mini-batch of 65 needs as many .* got 64"):
        new_run(ImageTraining(epochs=1, batch_size=65))


def test_outputs_are_float32_near_those_without_autocast():
    run = new_run()
    network = run.network.eval()
    inputs = torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        found, exact = run.forward(inputs), network(inputs)
    assert found.dtype == torch.float32
    assert not torch.equal(found, exact)
    torch.testing.assert_close(found, exact, rtol=0.05, atol=0.05)
