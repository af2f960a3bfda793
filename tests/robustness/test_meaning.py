"""What outputs mean: every kind gets the number that a direct evaluation gives."""

import pytest
import sklearn.metrics as sk
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy, cross_entropy, nll_loss

from metricopt import ConfigError, DataError, MetricError, tune
from metricopt.reading.meaning import Meaning, meaning_of
from tests.robustness.heads import (
    CE,
    HEADS,
    LOGITS,
    Squeezed,
    arrays,
    network,
    run,
    vectors,
)

WIDE = {"low": -1e4, "high": 1e4}
OF_LABELS = (sk.accuracy_score, sk.hamming_loss)
OF_SCORES = (sk.log_loss, sk.average_precision_score)
OF_TWO = (sk.f1_score, sk.roc_auc_score, sk.brier_score_loss)
OF_SEVERAL = (sk.label_ranking_loss, sk.coverage_error, sk.roc_auc_score)
OF_VALUES = (sk.mean_absolute_error, sk.mean_squared_error, sk.r2_score, sk.max_error)


def suiting(head):
    """Functions of scikit-learn that make sense for a head."""
    if head.decided is None:
        return OF_VALUES
    if head.data == "several":
        return OF_LABELS + OF_SEVERAL + (sk.average_precision_score,)
    return OF_LABELS + OF_SCORES + (OF_TWO if head.data == "cancer" else ())


CASES = [(name, given) for name in HEADS for given in suiting(HEADS[name])]


@pytest.mark.parametrize(
    ("name", "given"), CASES, ids=lambda part: getattr(part, "__name__", part)
)
def test_the_number_is_that_of_a_direct_evaluation(name, given):
    """A sigmoid head was read as logits, a regression as labels, [N] as [N, 1]."""
    head = HEADS[name]
    model, inputs, targets = head.problem()
    labels = given in (*OF_LABELS, sk.f1_score)

    def direct():
        read = head.decided if labels else head.scores
        truth = targets.numpy() if head.data == "several" else targets.numpy().ravel()
        return float(given(truth, read(model(inputs)).numpy()))

    before = direct()
    found = run(model, (inputs, targets), head.loss, given, **WIDE)
    assert found.metric_before == pytest.approx(before, abs=1e-6)
    found.apply()
    after = direct()
    found.remove()
    assert found.metric_after == pytest.approx(after, abs=1e-6)
    assert direct() == before
    assert found.meaning.describe() in found.summary()


def test_a_user_metric_gets_what_the_network_returns():
    """A network that returns [N] was read as [N, 1], and broadcast to N x N."""
    inputs, targets = vectors("diabetes")
    model, shapes = network(10, 1, Squeezed()), set()

    def error(outputs, truth):
        shapes.add((tuple(outputs.shape), tuple(truth.shape)))
        return (outputs - truth).square().mean()

    better = {"higher_is_better": False, "high": 99}
    found = run(model, (inputs, targets), nn.MSELoss(), error, **better)
    assert all(outputs == truth for outputs, truth in shapes)
    found.apply()
    assert found.metric_after == pytest.approx(error(model(inputs), targets).item())


@pytest.mark.parametrize("outputs", [None, "probabilities", "logits"])
def test_outputs_between_0_and_1_are_asked_about(outputs):
    """They were taken for logits: an accuracy of 1.00 was reported as .25."""
    model, inputs, targets = HEADS["sigmoid"].problem()

    def loss(outputs, truth):
        return binary_cross_entropy(outputs, truth)

    def call():
        return run(model, (inputs, targets), loss, sk.accuracy_score, outputs=outputs)

    if outputs is None:
        with pytest.raises(ConfigError, match=r"all outputs lie in \[0, 1\].*outputs="):
            call()
        return
    bound = 0.5 if outputs == "probabilities" else 0.0
    decided = model(inputs).detach().numpy() >= bound
    assert call().metric_before == pytest.approx(sk.accuracy_score(targets, decided))


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ("probabilities", r"needs outputs in \[0, 1\], got -"),
        ("log-probabilities", "exponentials sum to 1, as of a LogSoftmax"),
        ("logit", "outputs must be one of 'logits', 'prob"),
    ],
)
def test_outputs_that_cannot_be_what_is_said(outputs, text):
    with pytest.raises(ConfigError, match=text):
        run(network(64, 10), vectors("digits"), CE, "mcr", outputs=outputs)


@pytest.mark.parametrize("name", ["one logit", "flat logit", "sigmoid", "flat sigmoid"])
@pytest.mark.parametrize("metric", ["mcr", "f1"])
def test_built_in_metrics_take_labels_that_are_floats(name, metric):
    """They were refused."""
    head = HEADS[name]
    model, inputs, targets = head.problem()
    found = run(model, (inputs, targets), head.loss, metric)
    decided, truth = head.decided(model(inputs)), targets.ravel()
    right = sk.accuracy_score(truth, decided)
    expected = {"mcr": 1 - right, "f1": sk.f1_score(truth, decided)}[metric]
    assert found.metric_before == pytest.approx(expected)


def test_the_default_method_takes_labels_that_are_floats():
    """It could not learn their statistics, and another method took its place."""
    model, inputs, targets = HEADS["one logit"].problem()
    found = run(model, (inputs, targets), LOGITS, "mcr", method="auto", queries=14)
    assert found.method == "metricopt-outputs"


class Pixels(nn.Module):
    """Classifies the pixels of an 8 x 8 digit: empty, light or dark."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 3, 1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, images):
        return self.last(self.norm(self.first(images)).relu())


def pixels():
    images = torch.tensor(arrays("digits")[0]).view(-1, 1, 8, 8)
    levels = (images[:, 0] > 0).long() + (images[:, 0] > 1).long()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Pixels().eval(), images, levels


def tokens():
    """Classifies every row of a digit; classes are the last axis."""
    images = torch.tensor(arrays("digits")[0]).view(-1, 8, 8)
    means = images.mean(2)
    return network(8, 3), images, (means > 0).long() + (means > 0.3).long()


@pytest.mark.parametrize("given", ["mcr", sk.balanced_accuracy_score, "own"])
@pytest.mark.parametrize(("make", "axis"), [(pixels, 1), (tokens, 2)])
def test_dense_outputs(given, make, axis):
    """Offsets were added along the tokens, and metrics refused dense outputs."""
    model, inputs, targets = make()
    targets[0] = -100  # no label, as torch's losses have it

    def loss(outputs, truth):
        return cross_entropy(outputs.movedim(axis, 1), truth)

    def own(outputs, truth):
        decided, kept = outputs.argmax(axis), truth != -100
        return float((decided == truth)[kept].double().mean())

    def direct():
        outputs = model(inputs)
        truth, decided = targets[1:].flatten(), outputs.argmax(axis)[1:].flatten()
        right = own(outputs, targets)
        by_name = {"own": right, "mcr": 1 - right}
        return by_name.get(given) or sk.balanced_accuracy_score(truth, decided)

    metric = own if given == "own" else given
    better = True if given == "own" else None
    found = run(model, (inputs, targets), loss, metric, higher_is_better=better)
    assert found.metric_before == pytest.approx(direct(), abs=1e-6)
    found.apply()
    assert found.metric_after == pytest.approx(direct(), abs=1e-6)
    assert found.meaning.layout == ("channels" if axis == 1 else "tokens")
    assert found.adapter.outputs == 3


def test_an_own_loss_says_which_label_it_leaves_out():
    """A label of void pixels was refused, with no way but to wrap the metric."""
    model, inputs, targets = pixels()
    targets[:, 0] = 255
    kept = targets != 255
    right = sk.accuracy_score(targets[kept], model(inputs).argmax(1)[kept])

    def loss(outputs, truth):
        return cross_entropy(outputs, truth, ignore_index=255)

    data = (inputs, targets)
    said = "from 0 to 255, no labels of 3 .* left out, let the loss say so: loss.ignore"
    with pytest.raises(DataError, match=f"{said}_index = 255. Give labels"):
        run(model, data, loss, sk.accuracy_score)
    loss.ignore_index = 255
    found = run(model, data, loss, sk.accuracy_score)
    assert found.metric_before == pytest.approx(right, abs=1e-9)
    assert not any("no labels" in each for each in found.warnings)


@pytest.mark.parametrize(
    ("link", "labels", "doubted"),
    [
        (torch.softmax, 1, True),
        (torch.softmax, 2, False),
        (lambda outputs, _: outputs.sigmoid(), 1, False),
        (lambda outputs, _: outputs, 1, False),
    ],
)
def test_one_hot_targets_of_a_softmax_are_doubted(link, labels, doubted):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(60, 4, generator=generator)
    targets = torch.zeros(60, 4, dtype=torch.int64)
    targets.scatter_(1, logits.topk(labels).indices, 1)
    outputs = link(logits, 1)
    given = "logits" if bool((outputs < 0).any()) else "probabilities"
    found = meaning_of(outputs, targets, loss=None, given=given)
    assert found.truth == "multi-label"
    assert ("give targets.argmax(1)" in found.doubt) == doubted


def test_the_doubt_about_one_hot_targets_is_a_warning():
    outputs = torch.randn(80, 3, generator=torch.Generator().manual_seed(0)).softmax(1)
    targets = nn.functional.one_hot(torch.arange(80) % 3)
    found = tune(outputs, targets, "f1_macro", queries=6, progress=False)
    assert any("targets.argmax(1)" in each for each in found.warnings)


@pytest.mark.parametrize("outside", [(255, 254), (-1, 3)])
def test_two_numbers_that_are_no_labels_mark_nothing(outside):
    model, inputs, targets = pixels()
    targets[:, 0, :2] = torch.tensor(outside)
    found = meaning_of(model(inputs), targets, loss=cross_entropy)
    assert "no labels of 3 classes" in found.doubt
    assert "ignore_index" not in found.doubt


@pytest.mark.parametrize("name", ["softmax", "sigmoid", "several sigmoids"])
def test_probabilities_stay_probabilities(name):
    """Offsets were added to probabilities, which left [0, 1]."""
    head = HEADS[name]
    model, inputs, targets = head.problem()
    metric = sk.hamming_loss
    found = run(model, (inputs, targets), head.loss, metric, queries=30)
    found.adapter.attach(torch.full_like(found.phi, 3.0))
    shares = model(inputs)
    assert ((shares >= 0) & (shares <= 1)).all()
    if name == "softmax":
        torch.testing.assert_close(shares.sum(1), torch.ones(len(shares)))


@pytest.mark.parametrize(
    ("given", "declared", "text"),
    [
        (sk.mean_absolute_error, {"higher_is_better": True} | WIDE, "perfect pred"),
        (sk.r2_score, {"higher_is_better": False} | WIDE, "perfect predictions score"),
        (sk.mean_absolute_error, {"high": 0.01}, "which low and high promise"),
    ],
)
def test_the_direction_and_the_range_of_a_regression_are_checked(given, declared, text):
    model, *data = HEADS["value"].problem()
    with pytest.raises(MetricError, match=text):
        run(model, tuple(data), HEADS["value"].loss, given, **declared)


def test_rounding_in_float32_above_1_is_no_error():
    def generous(outputs, truth):
        return 1.0000001 if outputs.argmax(1).eq(truth).all() else 0.5

    model, data = network(64, 10), vectors("digits")
    assert run(model, data, CE, generous, higher_is_better=True).metric_before == 0.5


def test_what_a_metric_changes_in_place_is_seen_by_nobody():
    """Outputs and targets were shared with the metric, which could spoil both."""
    data, model = vectors("digits"), network(64, 10)
    before = data[1].clone()

    def destructive(outputs, truth):
        value = float(outputs.argmax(1).eq(truth).double().mean())
        outputs.zero_()
        truth.numpy()[:] = 0
        return value

    found = run(model, data, CE, destructive, higher_is_better=True)
    clean = run(model, data, CE, "mcr")
    assert torch.equal(data[1], before)
    assert found.metric_before == pytest.approx(1 - clean.metric_before)


DECISIONS = [
    (torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1]), CE, ("logits", "labels")),
    (torch.randn(5, 3), torch.tensor([0, 1, 9, 0, 1]), CE, ("raw", "other")),
    (torch.randn(5), torch.rand(5), CE, ("values", "numbers")),
    (torch.randn(5, 1), torch.tensor([3, 1, 2, 0, 1]), CE, ("values", "numbers")),
    (torch.randn(5, 3), torch.eye(5, 3), LOGITS, ("logits", "multi-label")),
    (torch.randn(5, 3), torch.eye(5, 3), nn.MSELoss(), ("values", "numbers")),
    (torch.randn(5, 3), torch.eye(5, 3), CE, ("raw", "other")),
    (torch.randn(5, 3, 4, 4), torch.ones(5, 4, 4).long(), CE, ("logits", "labels")),
    (torch.randn(5, 4, 3), torch.ones(5, 4).long(), None, ("logits", "labels")),
    ((torch.randn(5, 3),), torch.ones(5).long(), CE, ("raw", "other")),
    (torch.eye(5), torch.arange(5), None, ("probabilities", "labels")),
    (-torch.eye(5), torch.arange(5), None, ("embeddings", "other")),
]


@pytest.mark.parametrize(("outputs", "targets", "loss", "expected"), DECISIONS)
def test_decisions(outputs, targets, loss, expected):
    meaning = meaning_of(outputs, targets, loss=loss)
    assert (meaning.kind, meaning.truth) == expected


@pytest.mark.parametrize("link", [None, "softmax", "sigmoid"])
@pytest.mark.parametrize("layout", ["rows", "channels", "tokens"])
def test_inward_and_outward_are_inverse(link, layout):
    shape = (2, 5, 4) if layout == "rows" else (2, 5, 4, 4)
    logits = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    meaning = Meaning("probabilities" if link else "logits", "labels", layout, link)
    returned = meaning.outward(logits, leading=2)
    again = meaning.outward(meaning.inward(returned, leading=2), leading=2)
    torch.testing.assert_close(again, returned)
    assert torch.isfinite(meaning.inward(returned.round(), leading=2)).all()


@pytest.mark.parametrize("axis", [1, -1], ids=["rows", "tokens"])
def test_logarithms_of_probabilities_stay_normalised(axis):
    """Offsets were added to them: their exponentials did not sum to 1 any more."""
    inputs, digits = vectors("digits")
    if axis == -1:
        inputs, digits = inputs.view(60, 8, 8), digits[:, None].expand(-1, 8)
    model = network(inputs.shape[-1], 10, nn.LogSoftmax(axis))

    def loss(outputs, truth):
        return nll_loss(outputs.flatten(0, -2), truth.flatten())

    found = run(model, (inputs, digits), loss, sk.accuracy_score)
    assert found.meaning.kind == "log-probabilities"
    assert "logarithms of probabilities" in found.summary()
    model = found.apply()
    outputs = model(inputs)
    found.remove()
    assert bool(found.phi[-10:].any())
    assert torch.allclose(outputs.exp().sum(-1), torch.ones(digits.shape), atol=1e-6)
    right = sk.accuracy_score(digits.flatten(), outputs.argmax(-1).flatten())
    assert found.metric_after == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("name", ["one logit", "sigmoid", "several logits"])
def test_shares_of_labels_are_no_numbers(name):
    """Logits were compared with them as predicted values: a wrong mean error."""
    head = HEADS[name]
    model, inputs, targets = head.problem()
    data, error = (inputs, 0.1 + 0.8 * targets), sk.mean_absolute_error
    with pytest.raises(DataError, match="expects numbers as targets, but here"):
        run(model, data, head.loss, error, **WIDE)

    def squares(outputs, truth):
        return (outputs - truth).square().mean()

    better = {"higher_is_better": False, "high": 1e4}
    found = run(model, data, head.loss, squares, **better)
    direct = squares(model(data[0]), data[1]).item()
    assert found.metric_before == pytest.approx(direct, abs=1e-6)
    told = run(model, data, head.loss, error, outputs="values", **WIDE)
    direct = (model(data[0]) - data[1]).abs().mean().item()
    assert told.metric_before == pytest.approx(direct, abs=1e-6)


def test_labels_that_begin_with_1_are_told():
    """They were read by the loss and the metric alone, without a word."""
    inputs, digits = vectors("digits")

    def loss(outputs, truth):
        return cross_entropy(outputs, truth - 1)

    def accuracy(outputs, truth):
        return (outputs.argmax(1) == truth - 1).float().mean()

    data = (inputs, digits + 1)
    found = run(network(64, 10), data, loss, accuracy, higher_is_better=True)
    said = "targets are whole numbers from 1 to 10, no labels of 10 classes"
    assert any(each.startswith(said) for each in found.warnings)
    with pytest.raises(DataError, match=said):
        run(network(64, 10), data, loss, sk.accuracy_score)
