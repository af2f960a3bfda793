"""`apply` reaches a model however it is called, or refuses in a sentence."""

import copy
import io
import pickle
import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn

from metricopt import ConfigError, FinetuneOptions, auto_adapter, finetune
from tests.robustness.heads import network, vectors

QUICK = FinetuneOptions("cma-es", queries=8, no_harm=False, progress=False)
INPUTS, TARGETS = vectors("digits")
IMAGES = INPUTS.view(-1, 1, 8, 8)


def images_model():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten()
        return nn.Sequential(*layers, nn.Linear(144, 10))


def improve(model, inputs, options=QUICK):
    data = dict.fromkeys(("train", "observe"), (inputs, TARGETS))
    loss = nn.CrossEntropyLoss()
    found = finetune(model, **data, loss=loss, metric="mcr", options=options)
    # A random phi moves every output, whatever was found.
    generator = torch.Generator().manual_seed(1)
    return replace(found, phi=torch.randn(found.phi.shape, generator=generator))


@pytest.fixture(params=["vectors", "images"])
def case(request):
    """A result, its model, inputs, and outputs before and after, in that order."""
    vector = request.param == "vectors"
    model, inputs = (network(64, 10), INPUTS) if vector else (images_model(), IMAGES)
    found = improve(model, inputs)
    features = found.adapter.encode(inputs)
    model.eval()
    after = found.adapter.predict(features, found.phi[None])[0].detach()
    return found, model, inputs, model(inputs).detach(), after


def compiled(model, inputs):
    torch._dynamo.reset()
    made = torch.compile(model, backend="eager")
    made(inputs)
    return made


def compiled_in_place(model, inputs):
    torch._dynamo.reset()
    model.compile(backend="eager")
    model(inputs)
    return model


WAYS = {
    "called": lambda model, inputs: model,
    "forward": lambda model, inputs: lambda *given: model.forward(*given),
    "layer by layer": lambda model, inputs: _layers(model),
    "in a Sequential": lambda model, inputs: nn.Sequential(nn.Identity(), model),
    "in parallel": lambda model, inputs: nn.DataParallel(model),
    "compiled": compiled,
    "compiled in place": compiled_in_place,
}
LATER = {
    "deep copy": lambda model, inputs: copy.deepcopy(model),
    "replica": lambda model, inputs: _replica(model),
    "exported": lambda model, inputs: torch.export.export(model, (inputs,)).module(),
    "traced": lambda model, inputs: torch.jit.trace(model, inputs),
    "compiled later": compiled,
}


def _layers(model):
    def run(inputs):
        for layer in model[:-1]:
            inputs = layer.forward(inputs)
        return model[-1](inputs)

    return run


def _replica(model):
    """What `nn.DataParallel` makes of every module for another GPU."""
    made = {module: module._replicate_for_data_parallel() for module in model.modules()}
    for module, copied in made.items():
        copied._parameters = dict(module._parameters)
        for name, child in module.named_children():
            copied._modules[name] = made[child]
    return made[model]


@pytest.mark.parametrize("way", [*WAYS, *LATER])
@pytest.mark.filterwarnings(
    "ignore::FutureWarning",
    "ignore::torch.jit.TracerWarning",
    "ignore::UserWarning",
    "ignore:.*torch.jit.trace:DeprecationWarning",
)
def test_every_way_to_call_the_model_or_what_is_made_of_it(case, way):
    found, model, inputs, before, after = case
    with torch.no_grad():
        early = WAYS[way](model, inputs) if way in WAYS else model
        found.apply()
        run = LATER[way](model, inputs) if way in LATER else early
        got = run(inputs)
        whole = model(inputs)
        found.remove()
        again = early(inputs)
    if way == "layer by layer":
        # The layers have what belongs to them; offsets and scales belong to the whole.
        got = got * found.phi[-10:].exp() + found.phi[-20:-10]
    torch.testing.assert_close(got, after)
    torch.testing.assert_close(whole, after)
    torch.testing.assert_close(again, before)
    assert not torch.allclose(after, before)


@pytest.mark.parametrize("compile_", [compiled, compiled_in_place])
def test_a_compiled_model_is_fine_tuned_and_applied(compile_):
    plain, model = network(64, 10), network(64, 10)
    expected = improve(plain, INPUTS)
    warm = compile_(model, INPUTS)
    found = improve(warm, INPUTS)
    assert found.metric_after == expected.metric_after
    assert found.apply() is model
    torch.testing.assert_close(warm(INPUTS), expected.apply()(INPUTS))


def test_the_fast_path_of_a_transformer():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.Sequential(nn.Unflatten(1, (8, 8)), layer, nn.Flatten())
    model.append(nn.Linear(64, 10))
    adapter = auto_adapter(model, INPUTS[:4], sites=["1.linear1"])
    found = improve(model, INPUTS, replace(QUICK, adapter=adapter))
    expected = adapter.predict(adapter.encode(INPUTS), found.phi[None])[0]
    with torch.no_grad():
        torch.testing.assert_close(found.apply()(INPUTS), expected)


def test_the_same_result_may_be_applied_twice(case):
    found, _, inputs, before, after = case
    found.apply()
    torch.testing.assert_close(found.apply()(inputs), after)
    found.remove()
    torch.testing.assert_close(found.remove()(inputs), before)


@pytest.mark.parametrize("shared", [True, False])
def test_another_result_is_refused_while_one_is_applied(case, shared):
    found, model, inputs, _, after = case
    other = replace(found, phi=-found.phi)
    if not shared:
        other = replace(other, adapter=auto_adapter(model, inputs[:4]))
    found.apply()
    for act in (other.apply, other.remove, lambda: improve(model, inputs)):
        with pytest.raises(ConfigError, match="is applied to this network: call"):
            act()
        torch.testing.assert_close(model(inputs), after)
    found.remove()
    assert not torch.allclose(other.apply()(inputs), after)


def test_classes_hooks_and_modes_come_back(case):
    found, model, *_ = case
    model.train()
    model[0].eval()

    def state():
        return [
            (type(each), each.training, dict(each._forward_hooks), *vars(each))
            for each in model.modules()
        ]

    before = state()
    found.apply()
    assert not any(module.training for module in model.modules())
    assert repr(model).count("Linear") == sum(
        isinstance(module, nn.Linear) for module in model
    )
    found.remove()
    assert state() == before


def test_changed_weights_are_warned_of_and_not_saved(case, tmp_path):
    found, model, *_ = case
    found.apply()
    found.save(tmp_path / "phi.safetensors")
    next(model.parameters()).data.mul_(2)
    with pytest.raises(ConfigError, match="phi was chosen for other weights"):
        found.save(tmp_path / "other.safetensors")
    assert not (tmp_path / "other.safetensors").exists()
    with pytest.warns(UserWarning, match="phi was chosen for other weights"):
        found.apply()


def test_the_state_of_an_applied_model_says_that_it_lacks_phi(case):
    found, model, *_ = case
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    found.apply()
    for whole in (model, nn.Sequential(model)):
        with pytest.warns(UserWarning, match="this state_dict lacks phi"):
            state = whole.state_dict()
        assert list(map(torch.equal, state.values(), weights.values()))
    model.load_state_dict(weights)
    found.remove()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.state_dict()


def test_an_applied_model_is_not_pickled(case):
    found, model, *_ = case
    found.apply()
    for write in (pickle.dumps, lambda model: torch.save(model, io.BytesIO())):
        with pytest.raises(ConfigError, match="cannot be pickled: pickle what merge"):
            write(model)
    found.remove()
    pickle.dumps(model)


def test_a_forward_that_was_replaced_is_refused():
    model = network(64, 10)
    model[0].forward = model[0].forward
    with pytest.raises(ConfigError, match="forward of a Linear was replaced"):
        improve(model, INPUTS)
    assert type(model) is nn.Sequential
