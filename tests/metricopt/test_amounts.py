"""Amounts: predicted values that stay positive, for metrics that take no others."""

import re
from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.metrics import (
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_log_error,
    mean_tweedie_deviance,
)
from sklearn.model_selection import cross_val_predict
from torch import nn

from metricopt import (
    ConfigError,
    DataError,
    Meaning,
    auto_adapter,
    load_phi,
    save_phi,
    tune,
)
from metricopt.adapters.group_offsets import GroupOffsets, ShiftedByGroup
from metricopt.adapters.offsets_alone import OffsetsAlone
from metricopt.on_outputs.coordinates import Pace, descend
from metricopt.reading.outputs import Standard
from metricopt.sklearn import MetricTunedRegressor
from tests.metricopt.drawn import seeded

INPUTS, VALUES = load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def halves():
    """Out-of-fold predictions and values, all positive: of one half and the other."""
    predicted = cross_val_predict(Ridge(3.0), INPUTS, VALUES)
    assert predicted.min() > 0
    return [(predicted[part::2], VALUES[part::2]) for part in (0, 1)]


def power(found, outputs):
    return outputs ** found.scales.item() * np.exp(found.offsets.item())


@pytest.mark.parametrize(
    "metric", [mean_poisson_deviance, mean_gamma_deviance, mean_squared_log_error]
)
def test_amounts_get_the_power_and_the_factor_that_suit_the_metric(halves, metric):
    (own, truth), (others, other_truth) = halves
    found = tune(own, truth, metric, queries=16)
    assert "read as amounts" in found.summary()
    assert not found.warnings  # no query failed
    shifted = found.shifted(others)
    assert shifted == pytest.approx(power(found, others), rel=1e-6)
    best = minimize(
        lambda phi: metric(truth, own ** phi[0] * np.exp(phi[1])),
        [1.0, 0.0],
        method="Nelder-Mead",
    )
    least = found.metric_before - 0.9 * (found.metric_before - best.fun)
    assert found.metric_after < least
    assert metric(other_truth, shifted) < metric(other_truth, others)


def test_a_function_of_ones_own_says_that_values_are_amounts(halves):
    (own, truth), _ = halves

    def error(outputs, targets):
        return mean_gamma_deviance(targets, outputs)

    given = {"higher_is_better": False, "check_direction": False, "queries": 16}
    found = tune(own, truth, error, outputs="amounts", **given)
    assert found.metric_after < found.metric_before
    assert not found.warnings
    least = own.min()

    def narrow(outputs, targets):
        if outputs.min() < least:
            raise ValueError("too low")
        return error(outputs, targets)

    (doubt,) = tune(own, truth, narrow, **given).warnings
    assert doubt.endswith("and there are none, outputs='amounts' keeps them positive.")


def test_what_is_zero_stays_and_what_is_negative_is_refused(halves):
    (own, truth), (others, _) = halves
    own, others = own.copy(), others.copy()
    own[:20] = others[:20] = 0
    found = tune(own, truth, mean_squared_log_error, queries=14)
    assert found.offsets.item() != 0
    shifted = found.shifted(others)
    assert not shifted[:20].any()
    assert (shifted[20:] > 0).all()
    inputs = torch.tensor(others)
    for network in (found.found.merge(), found.found.apply()):
        assert network(inputs).numpy() == pytest.approx(shifted, rel=1e-5)
    with pytest.raises(
        DataError,
        match="amounts of 0 or more, as those the offsets were chosen on, got -",
    ):
        found.shifted(-others)
    with pytest.raises(ConfigError, match="needs outputs of 0 or more, got -"):
        tune(-others, truth, mean_squared_log_error, outputs="amounts")


@pytest.mark.parametrize("pixel", [9, 55])
def test_counts_that_are_mostly_zero_send_no_search_away(pixel):
    pixels, _ = load_digits(return_X_y=True)
    truth, inputs = pixels[:, pixel], np.delete(pixels, pixel, 1) / 16
    regressor = PoissonRegressor(alpha=30.0)
    predicted = cross_val_predict(regressor, inputs, truth)
    error = partial(mean_tweedie_deviance, power=1.5)
    found = tune(predicted[::2], truth[::2], error)
    assert found.values.isfinite().all()
    assert found.values.max() < 10 * found.metric_before
    after = error(truth[1::2], found.shifted(predicted[1::2]))
    before = error(truth[1::2], predicted[1::2])
    assert after < before - 0.1 if pixel == 9 else after < 1.001 * before


def test_whole_numbers_may_be_amounts(halves):
    (own, truth), _ = halves
    rounded = own.round().astype(int)
    found = tune(rounded, truth, mean_gamma_deviance, outputs="amounts", queries=14)
    assert found.metric_after < found.metric_before
    with pytest.raises(DataError, match="are predicted values can, say outputs"):
        tune(rounded, truth, mean_gamma_deviance)


def test_every_group_of_amounts_has_a_factor_of_its_own(halves):
    (own, truth), (others, _) = halves
    groups = np.arange(len(own)) % 2
    scaled = np.where(groups == 1, 3 * own, own)
    found = tune(
        scaled,
        truth,
        mean_gamma_deviance,
        columns={"group": groups},
        offsets_by="group",
        queries=16,
    )
    low, high = found.offsets[:, 0].exp().tolist()
    assert high == pytest.approx(low / 3, rel=0.2)
    shifted = found.shifted(others, np.arange(len(others)) % 2)
    assert shifted[:2] == pytest.approx(others[:2] * [low, high])


def test_a_regressor_keeps_its_predictions_positive():
    tuned = MetricTunedRegressor(PoissonRegressor(alpha=3.0), "neg_mean_gamma_deviance")
    tuned.fit(INPUTS[::2], VALUES[::2])
    assert tuned.logarithms_
    assert tuned.scale_ > 1.5  # it hardly dares to differ
    plain = tuned.estimator_.predict(INPUTS[1::2])
    predicted = tuned.predict(INPUTS[1::2])
    assert predicted == pytest.approx(plain**tuned.scale_ * np.exp(tuned.shift_))
    truth = VALUES[1::2]
    before, after = (mean_gamma_deviance(truth, each) for each in (plain, predicted))
    assert after < before - 0.02
    tuned.set_params(metric="neg_mean_absolute_error", cv=2, queries=4)
    tuned.fit(INPUTS[::2], VALUES[::2])
    assert not tuned.logarithms_


def test_who_says_values_gets_a_scale_and_a_shift():
    said = {"outputs": "values"}
    tuned = MetricTunedRegressor(
        PoissonRegressor(alpha=3.0),
        "neg_mean_gamma_deviance",
        cv=2,
        queries=4,
        options=said,
    )
    assert not tuned.fit(INPUTS, VALUES).logarithms_
    tuned.set_params(options={"outputs": "logits"})
    with pytest.raises(ConfigError, match="cannot hold outputs"):
        tuned.fit(INPUTS, VALUES)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_phi_of_zeros_changes_no_bit_of_amounts(dtype):
    outputs = torch.tensor([[0.0], [3e-3], [1.7], [6e4], [torch.inf]], dtype=dtype)
    standard = Standard.of(outputs[1:4], outputs[1:4], 1, logarithms=True)
    adapter = OffsetsAlone(1, scaled=True, standard=standard)
    assert torch.equal(adapter.predict((outputs,), torch.zeros(1, 2))[0], outputs)
    phi = torch.tensor([[0.5, 0.2]])
    moved = adapter.predict((outputs,), phi)[0].double()
    offset, scale = standard.affine(phi[0, :1], phi[0, 1:].exp())
    assert moved[[0, 4]].tolist() == [[0.0], [torch.inf]]
    wanted = (outputs[1:3].double().log() * scale + offset).exp()
    close = torch.finfo(dtype).eps + 1e-6
    assert moved[1:3].numpy() == pytest.approx(wanted.numpy(), rel=close)


def test_outputs_have_the_standards_they_have_alone():
    sizes = torch.tensor([1e-5, 1.0, 1e6])
    amounts = torch.rand(200, 3, generator=seeded()) * sizes
    amounts[:120, 2] = 0
    together = Standard.of(amounts, amounts, 1, logarithms=True)
    for place, column in enumerate(amounts.T[:, :, None]):
        alone = Standard.of(column, column, 1, logarithms=True)
        assert alone.centre == together.centre[place : place + 1]
        assert alone.unit == together.unit[place : place + 1]
    none = torch.zeros(9, 1)
    assert Standard.of(none, none, 1, logarithms=True) == Standard.plain(
        1, logarithms=True
    )


def test_factors_of_groups_are_no_shifts_of_values(tmp_path):
    path, adapters = tmp_path / "phi.safetensors", {}
    for kind in ("amounts", "values"):
        network = ShiftedByGroup(
            nn.Identity(), groups=2, outputs=1, meaning=Meaning(kind)
        )
        adapters[kind] = GroupOffsets(network)
    save_phi(path, torch.tensor([0.5, -0.5]), adapters["amounts"])
    with pytest.raises(ConfigError, match="saved for logarithms yes"):
        load_phi(path, adapters["values"])


def test_what_overflows_moves_no_phi():
    start = torch.tensor([[0.0], [1.0]])

    def promise(phi):
        return torch.stack([(phi[0] * 1e30).exp().sum() * 0, phi[1].sum()])

    *_, last = descend(promise, start, torch.ones(1), Pace(0.1, 3))
    assert last[0].item() == 0
    assert last[1].item() == pytest.approx(0.7, abs=1e-3)


class Exponential(nn.Module):
    """A network whose outputs are positive."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, inputs):
        return self.linear(inputs).exp()


def test_a_saved_phi_of_amounts_has_the_same_effect_elsewhere(tmp_path):
    network, inputs = Exponential(), torch.randn(6, 3)
    standard = Standard((1.0, -2.0), (0.5, 3.0), logarithms=True)
    own, plain = (
        auto_adapter(network, inputs, offsets=Meaning("amounts", standard=each))
        for each in (standard, None)
    )
    phi = torch.randn(own.size) / 3
    path = tmp_path / "phi.safetensors"
    save_phi(path, phi, own)
    wanted = own.predict(own.encode(inputs), phi[None])
    loaded = load_phi(path, plain)
    found = plain.predict(plain.encode(inputs), loaded[None])
    assert found.detach().numpy() == pytest.approx(wanted.detach().numpy(), rel=1e-5)
    merged = own.merged(phi)(inputs)
    assert merged.detach().numpy() == pytest.approx(
        wanted[0].detach().numpy(), rel=1e-5
    )
    values = auto_adapter(network, inputs, offsets=Meaning("values"))
    message = "was saved for logarithms yes, but this adapter has logarithms None"
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_phi(path, values)
