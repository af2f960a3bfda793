"""Pre-training: schedules, resumption with the same numbers, weights in half."""

import pytest
import torch
from torch import nn

from baselines.losses import make_loss
from benchmarks.image_batches import ImageBatches, channel_statistics
from benchmarks.image_data import Images
from benchmarks.image_networks import build_network
from benchmarks.pretraining import (
    Pretraining,
    PretrainingRun,
    forward_in_bfloat16,
    half_weights,
    predict_images,
    pretrain,
    state_digest,
)
from metricopt.errors import ConfigError, DivergedError

RECIPE = Pretraining(epochs=3, batch_size=16, rate=0.05)


def toy_images() -> tuple[ImageBatches, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    targets = torch.arange(4).repeat(16)
    pixels = torch.randint(60, (64, 8, 8, 1), generator=generator, dtype=torch.uint8)
    pixels[..., 0] += (40 * targets).to(torch.uint8)[:, None, None]
    return ImageBatches(pixels, *channel_statistics(pixels)), targets


def linear_head(features: int) -> nn.Module:
    return nn.Linear(features, 4)


def new_run(recipe: Pretraining = RECIPE, loss: str = "cross-entropy", **more):
    images, targets = toy_images()
    return PretrainingRun(
        build_network("digit-net", linear_head, 1),
        make_loss(loss, classes=4),
        recipe,
        images=Images(images, targets),
        generator=torch.Generator().manual_seed(5),
        **more,
    )


def final_state(run: PretrainingRun) -> str:
    learned = run.loss.state_dict() if isinstance(run.loss, nn.Module) else {}
    return state_digest(run.network.state_dict() | learned)


def test_training_learns(tmp_path):
    run = new_run(Pretraining(epochs=12, batch_size=16, rate=0.05))
    reports = []
    pretrain(run, tmp_path / "c.pt", key="k", on_epoch=reports.append)
    assert [report.epoch for report in reports] == list(range(1, 13))
    assert run.losses[-1] < 0.6 * run.losses[0]
    images, targets = toy_images()
    error = (predict_images(run.network, images).argmax(1) != targets).float().mean()
    assert error < 0.3


@pytest.mark.parametrize("loss", ["cross-entropy", "aucpr"])
def test_a_killed_training_ends_as_an_undisturbed_one(tmp_path, loss):
    undisturbed = new_run(loss=loss)
    pretrain(undisturbed, tmp_path / "a.pt", key="k")

    def killed(report):
        if report.epoch == 2:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "b.pt"
    with pytest.raises(KeyboardInterrupt):
        pretrain(new_run(loss=loss), checkpoint, key="k", on_epoch=killed)
    assert checkpoint.exists()
    again = new_run(loss=loss)
    pretrain(again, checkpoint, key="k")
    assert final_state(again) == final_state(undisturbed)
    assert again.losses == undisturbed.losses


def test_a_checkpoint_of_another_network_is_not_gone_on_from(tmp_path):
    checkpoint = tmp_path / "c.pt"
    torch.save({"key": "other", **new_run().state()}, checkpoint)
    run = new_run()
    pretrain(run, checkpoint, key="mine")
    assert run.epoch == 3


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn"])
def test_a_torn_checkpoint_is_begun_anew(tmp_path, content):
    checkpoint = tmp_path / "c.pt"
    checkpoint.write_bytes(content)
    run = new_run()
    pretrain(run, checkpoint, key="k")
    assert run.epoch == 3


def test_the_state_of_another_recipe_is_refused():
    other = new_run(Pretraining(epochs=4, batch_size=16, rate=0.05))
    with pytest.raises(ConfigError, match=r"expected the state of .*'epochs': 3"):
        new_run().restore(other.state())


def test_one_cycle_rises_for_a_quarter_and_ends_near_zero():
    run = new_run(Pretraining(epochs=10, batch_size=16, rate=0.4))
    rates = []
    for _ in range(run.recipe.epochs * run.steps_per_epoch):
        rates.append(run.optimizer.param_groups[0]["lr"])
        run.optimizer.step()
        run.rates.step()
    assert max(rates) == pytest.approx(0.4)
    assert rates.index(max(rates)) == pytest.approx(len(rates) / 4, abs=1)
    assert rates[-1] < 1e-3


def test_steps_divide_by_ten_at_half_and_three_quarters():
    run = new_run(Pretraining(epochs=8, batch_size=16, rate=0.1, schedule="steps"))
    rates = []
    for _ in range(8 * 4):
        rates.append(round(run.optimizer.param_groups[0]["lr"], 6))
        run.optimizer.step()
        run.rates.step()
    assert rates == [0.1] * 16 + [0.01] * 8 + [0.001] * 8


def test_the_loss_is_annealed_before_every_step():
    seen = []
    run = new_run(anneal=lambda step, steps: seen.append((step, steps)))
    run.run_epoch()
    run.run_epoch()
    assert seen == [(step, 12) for step in range(8)]


def test_what_a_loss_learns_does_not_decay():
    groups = new_run(loss="aucpr").optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [5e-4, 0.0]
    assert len(new_run().optimizer.param_groups) == 1


def test_a_loss_that_is_not_finite_stops_the_training():
    run = new_run()
    run.loss = lambda outputs, targets: outputs.sum() * float("nan")
    with pytest.raises(DivergedError, match="became nan in epoch 1 of 3"):
        run.run_epoch()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"epochs": 0}, "epochs >= 1, batch_size >= 2 and rate > 0, got 0"),
        ({"epochs": 1, "rate": 0.0}, "and 0.0"),
        ({"epochs": 1, "schedule": "cosine"}, "'one-cycle' or 'steps', got 'cosine'"),
    ],
)
def test_impossible_recipes_are_refused(changes, text):
    with pytest.raises(ConfigError, match=text):
        Pretraining(**changes)


def test_too_few_images_for_a_mini_batch_are_refused():
    with pytest.raises(ConfigError, match=r"mini-batch of 65 needs as many .* got 64"):
        new_run(Pretraining(epochs=1, batch_size=65))


def test_outputs_are_float32_near_those_without_autocast():
    network = build_network("digit-net", linear_head, 0).eval()
    inputs = torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        found, exact = forward_in_bfloat16(network, inputs), network(inputs)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, rtol=0.05, atol=0.05)


def test_half_weights_round_matrices_alone():
    state = {"w": torch.tensor([[1.0001]]), "b": torch.tensor([1.0001])}
    found = half_weights(state)
    assert found["w"].dtype == torch.float16 and found["b"].dtype == torch.float32
    assert found["b"].item() == state["b"].item()


def test_the_digest_sees_every_weight():
    state = {"w": torch.zeros(2, 2), "b": torch.zeros(1)}
    other = {"w": torch.tensor([[0.0, 0.0], [0.0, 1e-7]]), "b": torch.zeros(1)}
    assert state_digest(state) == state_digest(dict(reversed(state.items())))
    assert state_digest(state) != state_digest(other)
