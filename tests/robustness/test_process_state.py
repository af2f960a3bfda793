"""The process and the model after `finetune` are what they were before it."""

import random
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pytest
import torch
from torch import nn

from metricopt import (
    ConfigError,
    FinetuneOptions,
    LazySplit,
    auto_adapter,
    finetune,
    tune,
)
from tests.robustness.heads import network, vectors

DEFAULT = FinetuneOptions(queries=20, progress=False)
QUICK = FinetuneOptions("cma-es", queries=8, no_harm=False, progress=False)


def improve(model, data=None, options=QUICK, **other):
    """`finetune` on digits towards the error rate."""
    data = vectors("digits") if data is None else data
    given = {"loss": nn.CrossEntropyLoss(), "metric": "mcr", "train": data}
    return finetune(model, **(given | {"observe": data} | other), options=options)


def images():
    inputs, targets = vectors("digits")
    return inputs.view(-1, 1, 8, 8), targets


def convolutions(*first):
    """Two convolutions after the layers given, for digits as images."""
    middle = nn.Conv2d(1, 4, 3), *first, nn.ReLU(), nn.Conv2d(4, 4, 3)
    return nn.Sequential(*middle, nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 10))


def mixed(*layers):
    """A model some of whose modules train, and some of whose weights are frozen."""
    model = nn.Sequential(*layers)
    model[1].eval()
    model[0].requires_grad_(False)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    return model


def mixed_model():
    return mixed(network(64, 8), nn.BatchNorm1d(8), network(8, 10))


def state_of_model(model):
    return (
        [module.training for module in model.modules()],
        [(type(each), len(each._forward_hooks)) for each in model.modules()],
        [weight.requires_grad for weight in model.parameters()],
        [weight.grad.clone() for weight in model.parameters()],
        [value.clone() for value in model.state_dict().values()],
    )


def state_of_process():
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return (
        [torch.get_rng_state(), *gpus],
        [torch.from_numpy(np.random.get_state()[1].astype(np.int64))],
        [random.getstate()],
        [torch.get_num_threads(), torch.get_default_dtype()],
        [torch.is_grad_enabled(), torch.is_inference_mode_enabled()],
        [torch.are_deterministic_algorithms_enabled()],
    )


def differences(before, after):
    """The places where two states differ."""
    pairs = zip(chain(*before), chain(*after), strict=True)
    return [
        place
        for place, (one, other) in enumerate(pairs)
        if not (torch.equal(one, other) if torch.is_tensor(one) else one == other)
    ]


def failing(*_):
    random.random()
    np.random.rand()
    torch.rand(())
    raise KeyError("a metric that fails")


@contextmanager
def assert_unchanged(model):
    """Require that a model and the process are afterwards what they were before."""
    before = state_of_model(model) + state_of_process()
    yield
    assert not differences(before, state_of_model(model) + state_of_process())


@pytest.mark.parametrize("own", [False, True])
def test_everything_is_as_it_was_after_the_call(own):
    model = mixed_model()
    adapter = auto_adapter(model, vectors("digits")[0][:2]) if own else "auto"
    with assert_unchanged(model):
        improve(model, options=replace(QUICK, adapter=adapter))


class Counting(nn.Module):
    """A layer whose buffers change in every pass, as a counter or a cache does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(2, dtype=torch.int64))
        self.register_buffer("last", self.calls[1])
        self.register_buffer("bound", torch.zeros(()))
        self.register_buffer("unsaved", torch.zeros(()), persistent=False)
        self.register_buffer("table", torch.zeros(0), persistent=False)
        self.register_buffer("sparse", torch.eye(2).to_sparse(), persistent=False)

    def forward(self, inputs):
        self.calls += 1
        self.bound = self.bound + 1
        self.unsaved += 1
        if not len(self.table):
            self.table = torch.arange(9)
        return inputs


@pytest.mark.parametrize("fault", [False, True])
def test_buffers_that_a_pass_changes_are_put_back(fault, tmp_path):
    model = mixed(network(64, 8), Counting(), network(8, 10))
    layer = model[1]
    own = layer.calls, layer.last, layer.bound, layer.unsaved
    with assert_unchanged(model):
        if fault:
            with pytest.raises(Exception, match="KeyError"):
                improve(model, metric=failing, higher_is_better=True)
        else:
            improve(model).save(tmp_path / "phi.safetensors")
    now = layer.calls, layer.last, layer.bound, layer.unsaved
    assert all(one is other for one, other in zip(own, now, strict=True))
    assert not any(each.any() for each in now)
    # A layer may know its table by its own flag only: a longer one stays.
    assert len(layer.table) == 9


@pytest.mark.parametrize("fault", ["metric", "loss", "model", "interrupt", "config"])
def test_everything_is_as_it_was_after_an_exception(fault):
    def interrupted(*_):
        raise KeyboardInterrupt

    model = mixed_model()
    if fault == "model":
        model[2].register_forward_hook(failing)
    other, expected = {
        "metric": ({"metric": failing}, Exception),
        "loss": ({"loss": failing}, Exception),
        "model": ({}, Exception),
        "interrupt": ({"metric": interrupted}, KeyboardInterrupt),
        "config": ({"options": FinetuneOptions(sites=["9"])}, ConfigError),
    }[fault]
    with assert_unchanged(model), pytest.raises(expected):
        improve(model, **({"options": replace(QUICK, higher_is_better=True)} | other))


@contextmanager
def setting(change, value, usual):
    change(value)
    try:
        yield
    finally:
        change(usual)


default_dtype = partial(setting, torch.set_default_dtype, torch.float64, torch.float32)
deterministic = partial(setting, torch.use_deterministic_algorithms, True, False)
AROUND = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "float64 by default": default_dtype,
    "deterministic algorithms": deterministic,
}


@pytest.mark.parametrize("around", AROUND)
def test_contexts_around_the_call(around):
    expected = improve(mixed_model())
    model = mixed_model()
    with AROUND[around](), assert_unchanged(model):
        found = improve(model)
    assert found.metric_before == expected.metric_before
    if around == "float64 by default":
        assert found.metric_after <= found.metric_before
    else:
        assert torch.equal(found.phi, expected.phi)
    model.eval()
    found.apply()
    inputs, targets = vectors("digits")
    wrong = (model(inputs).argmax(1) != targets).double().mean().item()
    assert found.metric_after == pytest.approx(wrong, abs=1e-7)


def test_the_default_method_works_where_float64_is_the_default():
    model = mixed(network(64, 16), network(16, 10))
    with default_dtype(), assert_unchanged(model):
        found = improve(model, options=DEFAULT)
    assert found.metric_after < found.metric_before


@pytest.mark.parametrize(
    "form", [tuple, lambda pair: LazySplit(list(zip(*pair, strict=True)))]
)
@pytest.mark.parametrize("model", [lambda: network(64, 10), convolutions])
def test_data_made_in_inference_mode(form, model):
    pair = vectors("digits") if model is not convolutions else images()
    torch.manual_seed(0)
    network_ = model()
    expected = improve(network_, form(pair))
    with torch.inference_mode():
        data = form(tuple(each.clone() for each in pair))
        found = improve(network_, data)
    assert torch.equal(found.phi, expected.phi)


def test_weights_made_in_inference_mode_are_refused():
    with torch.inference_mode():
        model = network(64, 10)
    with pytest.raises(ConfigError, match=r"weight '0\.weight' was made in torch"):
        improve(model)


def test_tune_works_in_inference_mode():
    """It ended in an error of torch: inference tensors cannot be saved."""
    model, (inputs, targets) = network(64, 10), vectors("digits")
    outputs, settings = model(inputs).detach(), {"queries": 5, "progress": False}
    expected = tune(outputs, targets, "mcr", **settings)
    with torch.inference_mode():
        found = tune(model(inputs), targets.clone(), "mcr", **settings)
        assert torch.equal(found.found.phi, expected.found.phi)
        assert torch.equal(found.predict(model(inputs)), expected.predict(outputs))


default_half = partial(setting, torch.set_default_dtype, torch.float16, torch.float32)
REFUSED = {
    "the default device cpu, got meta": partial(torch.device, "meta"),
    "the default dtype float32 or float64, got torch.float16": default_half,
}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("call", ["finetune", "tune"])
def test_other_defaults_of_torch_are_refused(call, text):
    model, (inputs, targets) = network(64, 10), vectors("digits")
    outputs = model(inputs).detach()
    refused = pytest.raises(ConfigError, match=f"^expected {text}: call torch.set_def")
    with REFUSED[text](), refused:
        if call == "finetune":
            improve(model, (inputs, targets))
        else:
            tune(outputs, targets, "mcr", progress=False)


def test_autocast_is_refused():
    inside = torch.autocast("cpu", dtype=torch.bfloat16)
    with inside, pytest.raises(ConfigError, match=r"autocast\('cpu'\) must be off"):
        improve(network(64, 10))


def test_a_model_in_another_thread_runs_while_networks_are_traced():
    model, inputs = convolutions(), images()[0][:2]
    other = convolutions(nn.BatchNorm2d(4)).eval()
    expected = other(inputs)
    faults, stop = [], threading.Event()

    def run():
        while not stop.is_set():
            try:
                if not torch.equal(other(inputs), expected):
                    faults.append("other outputs")
            except (NameError, TypeError, RuntimeError, AttributeError) as error:
                faults.append(repr(error))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        cut = [auto_adapter(model, inputs).inner.is_cut for _ in range(30)]
    finally:
        stop.set()
        thread.join()
    assert not faults
    assert all(cut)


def test_two_threads_trace_at_once():
    call, models = nn.Module.__call__, [convolutions() for _ in range(2)]
    cut = []

    def trace(model):
        for _ in range(15):
            cut.append(auto_adapter(model, images()[0][:2]).inner.is_cut)

    threads = [threading.Thread(target=trace, args=[each]) for each in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cut) == 30 and all(cut)
    assert nn.Module.__call__ is call
