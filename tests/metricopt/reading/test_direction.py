"""The declared direction is tried on perfect predictions, unless the user says no."""

import pytest
import torch
from torch import nn

from metricopt import ConfigError, MetricError, finetune
from metricopt.reading.meaning import meaning_of
from tests.metricopt.reading.grouped import improved, network, splits

TRAIN, OBSERVE = splits()
GAP = {"higher_is_better": False, "queries": 20}


def gap(outputs, targets, group):
    """How much oftener one group is called ill than the other: labels differ, too."""
    ill = outputs.argmax(1).double().numpy()
    return abs(ill[group == "rough"].mean() - ill[group == "fine"].mean())


def test_a_gap_that_labels_have_is_lowered_once_the_check_is_off():
    with pytest.raises(MetricError, match="need not be best, set check_direction="):
        improved(gap, **GAP)
    found = improved(gap, check_direction=False, **GAP)
    assert found.metric_after < found.metric_before
    assert found.evidence.identified is not None


def test_the_check_is_not_counted_where_it_is_off():
    message = "at least 6, as 2 of them check the declared direction"
    for too_few in (3, 4):
        with pytest.raises(ConfigError, match=message):
            improved(gap, higher_is_better=False, queries=too_few)
    found = improved(gap, higher_is_better=False, queries=4, check_direction=False)
    assert found.spent.queries <= 4


def test_an_option_at_its_default_leaves_checkpoints_as_they_were(tmp_path):
    kept, short = tmp_path / "kept", GAP | {"queries": 8}
    improved(gap, check_direction=False, checkpoint=kept, **short)
    assert "check_direction" in kept.read_text()
    with pytest.raises(ConfigError, match=r"its check_direction was False"):
        improved(gap, checkpoint=kept, **short)
    other = tmp_path / "other"
    improved("accuracy", checkpoint=other, queries=5)
    assert "check_direction" not in other.read_text()


@pytest.mark.parametrize("failing", [3, 4])
def test_a_failure_of_the_check_does_not_end_the_call(failing):
    values = []

    def flaky(outputs, targets):
        values.append((outputs.argmax(1) == targets).double().mean().item())
        if len(values) == failing:
            raise OSError("service down")
        return values[-1]

    found = improved(flaky, higher_is_better=True, queries=8)
    (said,) = (each for each in found.warnings if "direction" in each)
    assert len(values) > 4  # the search went on
    kind = {3: "perfect", 4: "inverted"}[failing]
    assert f"not checked on {kind} predictions: metric 'flaky' raised OSError" in said
    assert found.metric_after >= found.metric_before == values[0]


def profit(outputs, targets):
    """What is earned where a find brings its amount, and a look costs 500."""
    looked = outputs.argmax(1) == 1
    return (looked * (targets[:, 0] * targets[:, 1] - 500)).mean().item()


def loss(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets[:, 0].long())


def with_amounts(split):
    both = torch.stack([split.targets.double(), split.columns["amount"]], 1)
    return split.inputs, both


@pytest.mark.parametrize("outputs", [None, "logits"])
def test_labels_with_amounts_are_no_predicted_values(outputs):
    found = finetune(
        network(),
        train=with_amounts(TRAIN),
        observe=with_amounts(OBSERVE),
        loss=loss,
        metric=profit,
        higher_is_better=True,
        queries=16,
        outputs=outputs,
        progress=False,
    )
    (warning,) = (each for each in found.warnings if "labels beside" in each)
    assert "observe=(inputs, labels, {'amount': amounts})" in warning
    assert found.meaning.truth == "other"


VALUES = torch.tensor([[0.0, 3.5], [1.0, 2.0], [1.0, -1.0]])


@pytest.mark.parametrize(
    ("targets", "loss", "given", "truth"),
    [
        (VALUES, loss, None, "other"),
        (VALUES, nn.MSELoss(), None, "numbers"),
        (VALUES, loss, "values", "numbers"),
        (VALUES + 0.25, loss, None, "numbers"),
        (VALUES[:, :1].repeat(1, 2), loss, None, "multi-label"),
    ],
)
def test_which_targets_are_labels_with_numbers_beside_them(targets, loss, given, truth):
    outputs = torch.tensor([[-1.0, 2.0], [3.0, 0.5], [0.1, 1.5]])
    assert meaning_of(outputs, targets, loss=loss, given=given).truth == truth
