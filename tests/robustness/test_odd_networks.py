"""Networks whose code is unusual: the right number, or a refusal before any query."""

import copy
import inspect
import pickle
import types
from collections.abc import Callable

import pytest
import sklearn.metrics as sk
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

import metricopt
from metricopt import ConfigError
from tests.robustness.forms import Rows, made
from tests.robustness.heads import network, vectors
from tests.robustness.refused import SPLITS, refusal
from tests.robustness.test_apply import INPUTS, TARGETS, improve
from tests.robustness.test_input_forms import LABELS, PIXELS, found_on
from tests.robustness.test_process_state import convolutions, images
from tests.robustness.test_process_state import improve as improve_on


class Own(nn.Linear):
    """A layer that its weights alone do not describe, for all one knows."""

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs)


class Written(nn.Module):
    """A network with code of its own around two layers."""

    def __init__(self, code: Callable[..., object]) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 10), nn.Linear(10, 10)
        self.own = Own(10, 10)
        self.layers = [self.first, self.own]
        self.inner = nn.Sequential(nn.Linear(10, 10), nn.ReLU())
        self.code = code

    def forward(self, inputs: Tensor, prior: Tensor | None = None) -> object:
        return self.code(self, inputs, prior)


def written(code: Callable[..., object]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Written(code)


class OwnError(Exception):
    """An error class of a user."""


def in_place(net, x, prior):
    x -= 0.5
    return net.last(net.first(x).relu())


def optional(net, x, prior):
    hidden = net.first(x)
    return hidden if prior is None else net.last(hidden + prior)


def keeping(net, x, prior):
    net.features = net.first(x).relu()
    return net.last(net.features)


def raising(net, x, prior):
    if type(x) is not Tensor:
        raise OwnError("a tensor, please")
    return net.last(net.first(x).relu())


TAKEN = {
    "in place": in_place,
    "optional": optional,
    "keeping": keeping,
    "sliced": lambda net, x, _: net.last(net.inner[:2](net.first(x))),
    "new layers": lambda net, x, _: net.last(nn.ReLU()(net.first(x))),
    "raising": raising,
}


@pytest.mark.parametrize("code", TAKEN.values(), ids=TAKEN)
def test_the_number_is_that_of_the_applied_and_of_the_merged_network(code) -> None:
    model = written(code)
    kept, before = INPUTS.clone(), copy.deepcopy(model.state_dict())
    found = improve(model, INPUTS)
    assert torch.equal(INPUTS, kept)
    pickle.dumps(vars(model).get("features"))
    expected = found.adapter.predict(found.adapter.encode(INPUTS), found.phi[None])[0]
    merged = found.merge()
    with torch.no_grad():
        torch.testing.assert_close(merged(INPUTS.clone()), expected)
        torch.testing.assert_close(found.apply()(INPUTS.clone()), expected)
    found.remove()
    assert all(map(torch.equal, model.state_dict().values(), before.values()))


def called_twice(net, x, prior):
    hidden = net.first(x)
    return net.last(net.last.forward(hidden).relu()) + net.first.forward(x.flip(1))


def hooked(change: Callable[[Tensor], Tensor]) -> nn.Module:
    model = network(64, 10)
    model.register_forward_hook(lambda module, inputs, outputs: change(outputs))
    return model


def with_own_forward() -> nn.Module:
    model = network(64, 10)
    forward = model.forward
    model.forward = lambda inputs: forward(inputs)
    return model


REFUSED = {
    "called in two ways": (lambda: written(called_twice), "outputs .* by, but they di"),
    "frozen mapping": (
        lambda: written(
            lambda net, x, _: types.MappingProxyType({"logits": net.first(x)})
        ),
        "a dict that can be changed",
    ),
    "hook": (lambda: hooked(lambda outputs: outputs * 0.1), "a forward hook that cha"),
    "softmax hook": (
        lambda: hooked(lambda outputs: outputs.softmax(-1)),
        "a forward h",
    ),
    "own forward": (with_own_forward, "forward of a Sequential was replaced"),
    "lazy": (lambda: nn.LazyLinear(10), "the weight 'weight' has no shape yet"),
    "lazy buffers": (
        lambda: nn.LazyBatchNorm1d(affine=False),
        "the buffer 'running_mean' has no shape yet",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_before_any_query(name: str) -> None:
    made, sentence = REFUSED[name]
    data = dict.fromkeys(SPLITS, (INPUTS, TARGETS))
    assert refusal(ConfigError, sentence, model=made(), **data)


def reads_weights(net, x, prior):
    again = nn.functional.linear(x.flip(1), net.first.weight, net.first.bias)
    return net.last(net.first(x) - again)


def listed(net, x, prior):
    return net.layers[1](net.layers[0](x).relu())


@pytest.mark.parametrize("code", [reads_weights, listed])
def test_a_copy_that_would_be_wrong_is_not_made(code) -> None:
    found = improve(written(code), INPUTS)
    with pytest.raises(ConfigError, match=r"merge\(\) cannot put phi .* use apply\(\)"):
        found.merge()


def test_merge_while_another_result_is_applied_is_refused() -> None:
    model = network(64, 10)
    one, other = improve(model, INPUTS), improve(model, INPUTS)
    one.apply()
    with pytest.raises(ConfigError, match="another result is applied to this network"):
        other.merge()
    one.merge()
    assert one.remove() is model


class Merging(nn.Linear):
    """A layer that takes a correction into its weight in evaluation, as LoRA does."""

    def __init__(self) -> None:
        super().__init__(64, 10)
        self.correction = nn.Parameter(torch.ones(10, 64))
        self.merged = False

    def train(self, mode: bool = True) -> nn.Module:
        super().train(mode)
        if mode == self.merged:
            sign = -1 if mode else 1
            self.weight.data += sign * self.correction.data
            self.merged = not mode
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        outputs = super().forward(inputs)
        if self.merged:
            return outputs
        return outputs + inputs @ self.correction.T


def test_layers_that_merge_in_evaluation_are_left_alone() -> None:
    model = nn.Sequential(Merging())
    kept = model[0].weight.detach().clone()
    improve(model, INPUTS)
    assert torch.equal(model[0].weight, kept)
    assert model.training and model[0].training and not model[0].merged


def test_a_registry_of_subclasses_does_not_grow() -> None:
    known = []

    class Registered(nn.Linear):
        def __init_subclass__(cls, *, name: str) -> None:
            known.append(name)

    class Named(Registered, name="named"):
        pass

    model = nn.Sequential(Named(64, 10))
    found = improve(model, INPUTS)
    found.apply()
    assert type(model[0]).__name__ == "Named"
    found.remove()
    assert known == ["named"] and type(model[0]) is Named


def test_an_applied_model_has_its_signature_and_takes_one_example() -> None:
    model = written(optional)
    found = improve(model, INPUTS)
    signature = inspect.signature(model.forward)
    found.apply()
    assert inspect.signature(model.forward) == signature
    with torch.no_grad():
        torch.testing.assert_close(model(INPUTS[0]), model(INPUTS)[0])


class Centred(nn.Module):
    """Subtracts the mean of the batch, as batch normalisation does."""

    def forward(self, inputs):
        return inputs - inputs.mean(0)


class Dropped(nn.Module):
    """Dropout that is on in evaluation mode, too."""

    def forward(self, inputs):
        return dropout(inputs, 0.5, training=True)


def unnormed(kind, size):
    """A batch normalisation without running statistics."""
    return kind(size, track_running_stats=False)


def dropping(place):
    model = convolutions()
    return model.insert(place, Dropped())


STATISTICS = r"layer '\d', BatchNorm\dd, has no running statistics"
CHANCE = "they depend on chance: is there a dropout"
MIXED = {
    "before the site": (
        lambda: nn.Sequential(unnormed(nn.BatchNorm1d, 64), nn.Linear(64, 10)),
        STATISTICS,
    ),
    "after the site": (
        lambda: nn.Sequential(
            nn.Linear(64, 4), unnormed(nn.BatchNorm1d, 4), nn.Linear(4, 10)
        ),
        STATISTICS,
    ),
    "far before the site": (
        lambda: convolutions(unnormed(nn.BatchNorm2d, 4)),
        STATISTICS,
    ),
    "a layer of one's own": (
        lambda: convolutions(Centred()),
        "outputs depend on the other examples",
    ),
    "dropout first": (lambda: dropping(0), CHANCE),
    "dropout within": (lambda: dropping(1), CHANCE),
    "dropout behind": (lambda: dropping(5), CHANCE),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_depends_on_more_than_the_example_is_refused(name):
    made, text = MIXED[name]
    model = made()
    images_taken = any(isinstance(each, nn.Conv2d) for each in model)
    with pytest.raises(ConfigError, match=text):
        improve_on(model, images() if images_taken else vectors("digits"))


@pytest.mark.parametrize("statistics", [False, True])
def test_instance_norm_treats_examples_one_by_one(statistics):
    torch.manual_seed(0)
    layer = nn.InstanceNorm2d(4, affine=True, track_running_stats=statistics)
    model, (inputs, targets) = convolutions(layer), images()
    found = improve_on(model, (inputs, targets))
    found.apply()
    model.eval()
    with torch.no_grad():
        wrong = [model(inputs[[i]])[0].argmax() != targets[i] for i in range(60)]
    assert found.metric_after == pytest.approx(sum(map(float, wrong)) / 60)


class Fixed(nn.Module):
    """A function without weights: brightness of ten parts of an image."""

    def forward(self, pixels: Tensor) -> Tensor:
        return pixels[:, :60].reshape(-1, 10, 6).sum(2)


class Wrapped(nn.Module):
    """Calls another network."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, pixels: Tensor) -> Tensor:
        return self.inner(pixels)


def scripted() -> nn.Module:
    layers = made(nn.Linear, 64, 10), nn.BatchNorm1d(10)
    return torch.jit.script(nn.Sequential(*layers).eval())


def traced() -> nn.Module:
    return torch.jit.trace(made(Rows), PIXELS[:2])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["function", "wrapped", "wrapped traced"])
def test_offsets_alone_give_the_number_of_the_applied_network(kind: str) -> None:
    model = {
        "function": Fixed,
        "wrapped": lambda: Wrapped(scripted()),
        "wrapped traced": lambda: Wrapped(traced()),
    }[kind]()

    def measured() -> float:
        with torch.no_grad():
            shares = model(PIXELS).double().softmax(1)
        return float(sk.log_loss(LABELS.numpy(), shares.numpy()))

    before = measured()
    found = found_on(model, (PIXELS, LABELS))
    assert found.phi.shape == (20,)  # offsets and scales
    assert "no layer that could be modulated" in found.summary()
    assert found.metric_before == pytest.approx(before, abs=1e-5)
    found.apply()
    assert found.metric_after == pytest.approx(measured(), abs=1e-5)
    found.remove()
    assert measured() == before


def test_a_layer_of_ones_own_choice_must_be_there() -> None:
    with pytest.raises(ConfigError, match="unknown site 'head' in Fixed"):
        metricopt.auto_adapter(Fixed(), PIXELS[:4], sites=["head"])
    with pytest.raises(ConfigError, match=r"Fixed has no layer .* make an adapter by"):
        metricopt.auto_adapter(Fixed(), PIXELS[:4], offsets=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", [scripted, traced])
def test_a_scripted_network_is_refused_with_the_way_out(kind) -> None:
    with pytest.raises(ConfigError, match=r"scripted or traced, .* wrap it in an nn.M"):
        found_on(kind(), (PIXELS, LABELS))
