"""`merge` returns a plain model that predicts as the applied one does."""

import copy
import io
import pickle
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from metricopt import ConfigError, DynamicBias, FiLM, Meaning, auto_adapter, load_phi
from metricopt.adapters.applied.folding import folded
from metricopt.adapters.output_offsets import OutputOffsets
from tests.robustness.heads import HEADS, network, run
from tests.robustness.test_apply import IMAGES, INPUTS, QUICK, images_model, improve


class Head(nn.Module):
    """A model whose last layer is followed by arithmetic, or by nothing."""

    def __init__(self, body, halved=False):
        super().__init__()
        self.body, self.halved = body, halved

    def forward(self, inputs):
        outputs = self.body(inputs)
        return outputs / 2 if self.halved else outputs


class Doubled(nn.Conv2d):
    """A convolution that its weights alone do not describe."""

    def forward(self, inputs):
        return super().forward(inputs) * 2


def normed(layer, first=None):
    first = nn.Conv2d(1, 4, 3, bias=False) if first is None else first
    return nn.Sequential(first, layer, nn.Flatten(), nn.Linear(144, 10))


MODELS = {
    "linear": lambda: network(64, 10),
    "no bias": lambda: nn.Sequential(nn.Linear(64, 10, bias=False)),
    "module": lambda: Head(network(64, 10)),
    "halved": lambda: Head(network(64, 10), halved=True),
    "one layer": lambda: nn.Linear(64, 10),
    "layer norm": lambda: nn.Sequential(
        nn.Linear(64, 6), nn.LayerNorm(6), nn.Linear(6, 10)
    ),
    "layer norm of three axes": lambda: normed(nn.LayerNorm([4, 6, 6], bias=False)),
    "conv and batch norm": images_model,
    "conv alone": lambda: normed(nn.ReLU()),
    "batch norm without weights": lambda: normed(nn.BatchNorm2d(4, affine=False)),
    "group norm": lambda: normed(nn.GroupNorm(2, 4)),
    "instance norm": lambda: normed(nn.InstanceNorm2d(4)),
    "own convolution": lambda: normed(nn.ReLU(), Doubled(1, 4, 3)),
}
FOLDED = ("linear", "module", "layer norm", "conv and batch norm", "group norm")


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    """A name, a result, its model, inputs, and the applied outputs."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MODELS[request.param]()
    is_image = any(isinstance(module, nn.Conv2d) for module in model.modules())
    inputs = IMAGES if is_image else INPUTS
    found = improve(model, inputs)
    with torch.no_grad():
        after = found.apply()(inputs)
        found.remove()
    return request.param, found, model, inputs, after


@torch.no_grad()
def test_a_merged_model_with_parametrizations_is_saved_by_its_state(tmp_path):
    model = nn.Sequential(weight_norm(nn.Linear(64, 10)), nn.ReLU(), nn.Linear(10, 10))
    adapter = auto_adapter(model, INPUTS[:4])
    phi = torch.linspace(-1, 1, adapter.size)
    merged, path = adapter.merged(phi), tmp_path / "merged.pt"
    expected = merged(INPUTS)
    with adapter.attach(phi):
        assert_close(model(INPUTS), expected)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        torch.save(merged, path)
    torch.save(merged.state_dict(), path)
    other = adapter.merged(2 * phi)
    other.load_state_dict(torch.load(path))
    assert_close(other(INPUTS), expected)


FLAT = Meaning(flat=True)


def assert_close(outputs, expected):
    bound = 1e-6 * max(1.0, expected.abs().max().item())
    torch.testing.assert_close(outputs, expected, rtol=1e-6, atol=bound)


@torch.no_grad()
def test_a_merged_model_predicts_as_the_applied_one(case):
    name, found, model, inputs, after = case
    state = copy.deepcopy(model.state_dict())
    merged = found.merge()
    assert_close(merged(inputs), after)
    assert all(map(torch.equal, state.values(), model.state_dict().values()))
    found.apply()
    assert_close(found.merge()(inputs), after)
    assert not any(module._forward_hooks for module in merged.modules())
    found.remove()
    if name in FOLDED:
        assert set(merged.state_dict()) == set(state)
        other = copy.deepcopy(model)
        other.load_state_dict(merged.state_dict())
        assert_close(other.eval()(inputs), after)


@torch.no_grad()
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore::torch.jit.TracerWarning",
)
def test_a_merged_model_goes_everywhere(case):
    name, found, _, inputs, after = case
    merged = found.merge()
    assert_close(copy.deepcopy(merged)(inputs), after)
    assert_close(pickle.loads(pickle.dumps(merged))(inputs), after)
    torch.save(merged, stream := io.BytesIO())
    stream.seek(0)
    assert_close(torch.load(stream, weights_only=False)(inputs), after)
    assert_close(torch.export.export(merged, (inputs,)).module()(inputs), after)
    assert_close(torch.jit.trace(merged, inputs)(inputs), after)
    torch._dynamo.reset()
    assert_close(torch.compile(merged, backend="eager", fullgraph=True)(inputs), after)
    if name not in ("halved", "own convolution"):
        assert_close(torch.jit.script(merged)(inputs), after)


@pytest.mark.parametrize(
    ("head", "meaning"),
    [
        ("sigmoid", Meaning(link="sigmoid")),
        ("flat sigmoid", Meaning(link="sigmoid")),
        ("softmax", Meaning(link="softmax")),
        ("log-softmax", Meaning(link="log-softmax")),
        ("flat logit", True),
        ("logits", True),
    ],
)
@torch.no_grad()
def test_offsets_are_merged_and_loaded_as_the_page_says(tmp_path, head, meaning):
    model, inputs, targets = HEADS[head].problem()
    elsewhere, path = copy.deepcopy(model), tmp_path / "phi.safetensors"
    found = run(model, (inputs, targets), HEADS[head].loss, "mcr")
    found = replace(found, phi=torch.linspace(-1, 1, len(found.phi)))
    found.save(path)
    after = found.apply()(inputs)
    found.remove()
    assert_close(found.merge()(inputs), after)
    adapter = auto_adapter(elsewhere, inputs[:4], offsets=meaning)
    with adapter.attach(load_phi(path, adapter)):
        assert torch.equal(elsewhere(inputs), after)
    if meaning is not True:
        other = auto_adapter(elsewhere, inputs[:4])
        with pytest.raises(ConfigError, match=f"saved for link {meaning.link}"):
            load_phi(path, other)


@torch.no_grad()
def test_a_phi_of_images_is_loaded_with_the_options_of_the_call(tmp_path):
    model, own = images_model(), {"size": 8, "seed": 3}
    elsewhere = copy.deepcopy(model)
    found = improve(model, IMAGES, replace(QUICK, **own))
    found.save(tmp_path / "phi.safetensors")
    adapter = auto_adapter(elsewhere, IMAGES[:4], **own)
    with adapter.attach(load_phi(tmp_path / "phi.safetensors", adapter)):
        assert torch.equal(elsewhere(IMAGES), found.apply()(IMAGES))
    for other in ({"size": 8}, {"size": 7, "seed": 3}):
        adapter = auto_adapter(elsewhere, IMAGES, **other)
        with pytest.raises(ConfigError, match=r"saved for (seed|size)"):
            load_phi(tmp_path / "phi.safetensors", adapter)


def assert_merges(adapter, inputs=INPUTS):
    phi = torch.linspace(-1, 1, adapter.size)
    with adapter.attach(phi), torch.no_grad():
        after = adapter.network(inputs)
    assert_close(adapter.merged(phi)(inputs).detach(), after)


def test_tied_weights_stay_those_of_the_other_layer():
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
    model[2].weight = model[0].weight
    assert_merges(FiLM(model, INPUTS[:4], sites=["0"], form="direct"))
    assert model[2].weight is model[0].weight


def test_weights_made_by_a_parametrization_are_left_alone():
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(64, 10)))
    assert_merges(DynamicBias(model, size=4))


def test_the_untouched_phi_merges_to_an_equal_model():
    model = network(64, 10)
    adapter = auto_adapter(model, INPUTS[:4])
    merged = adapter.merged(torch.zeros(adapter.size))
    states = (each.state_dict().values() for each in (model, merged))
    assert all(map(torch.equal, *states))


@pytest.mark.parametrize("link", [None, "softmax"])
@torch.no_grad()
def test_a_merged_model_takes_one_image_without_a_batch(link):
    last = nn.Tanh() if link is None else nn.Softmax(-3)
    model = nn.Sequential(nn.Conv2d(1, 5, 3), nn.Tanh(), last)
    few, meaning = IMAGES[:4], Meaning(layout="channels", link=link)
    adapter = OutputOffsets(FiLM(model, few, sites=["1"]), few, meaning)
    phi = torch.linspace(-1, 1, adapter.size)
    merged = adapter.merged(phi)
    expected = adapter.predict(adapter.encode(few), phi[None])[0]
    assert_close(merged(few), expected)
    assert_close(merged(few[1]), expected[1])


class Shared(nn.Module):
    """Calls one activation on images and on their means."""

    def __init__(self):
        super().__init__()
        self.cut, self.last = nn.Conv2d(1, 8, 3), nn.Linear(8, 8)
        self.shared = nn.Tanh()

    def forward(self, images):
        means = self.shared(self.cut(images)).mean((-2, -1))
        return self.shared(self.last(means))


@torch.no_grad()
def test_a_site_that_runs_on_outputs_of_several_forms_is_merged():
    assert_merges(FiLM(Shared(), IMAGES[:4], sites=["shared"]), IMAGES)


@torch.no_grad()
def test_a_merged_row_is_what_an_applied_one_is():
    model = nn.Sequential(nn.Linear(64, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0))
    adapter = OutputOffsets(FiLM(model, INPUTS[:4], sites=["1"]), INPUTS[:4], FLAT)
    phi = torch.linspace(-1, 1, adapter.size)
    merged = adapter.merged(phi)
    with adapter.attach(phi):
        expected = model(INPUTS[:4])
        assert_close(model(INPUTS[1]), expected[1:2])
    assert_close(merged(INPUTS[:4]), expected)
    assert_close(merged(INPUTS[1]), expected[1:2])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("axes", [[6], [4, 6]])
def test_layer_norms_take_scales_and_shifts_of_the_last_axis(axes, bias):
    generator = torch.Generator().manual_seed(0)
    layer = nn.LayerNorm(axes, bias=bias)
    for weight in layer.parameters():
        weight.data = torch.randn(weight.shape, generator=generator)
    inputs = torch.randn(5, 4, 6, generator=generator)
    factor, shift = torch.rand(2, 6, generator=generator)
    expected = layer(inputs) * factor + shift
    merged = folded(copy.deepcopy(layer), factor, shift, -1, 3)
    assert type(merged) is nn.LayerNorm and merged.bias.shape == tuple(axes)
    assert_close(merged(inputs), expected)


@pytest.fixture
def group(tmp_path):
    """A group of processes, this one alone."""
    place = f"file://{tmp_path / 'group'}"
    torch.distributed.init_process_group("gloo", place, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("outer", [True, False])
def test_what_was_trained_on_several_processes_is_merged_to_train_on(outer):
    inner = images_model()
    model = nn.parallel.DistributedDataParallel(inner)
    if not outer:
        model = Head(model, halved=True)
    found = improve(model, IMAGES)
    found = replace(found, phi=torch.linspace(-0.5, 0.5, len(found.phi)))
    after = found.apply()(IMAGES).detach()
    found.remove()
    merged = found.merge()
    kinds = {type(module) for module in merged.modules()}
    assert nn.parallel.DistributedDataParallel not in kinds
    assert_close(merged(IMAGES).detach(), after)
    optimizer = torch.optim.SGD(merged.train().parameters(), lr=0.1)
    start = merged(IMAGES).square().mean().item()
    for _ in range(2):
        optimizer.zero_grad()
        merged(IMAGES).square().mean().backward()
        optimizer.step()
    assert all(weight.grad is not None for weight in merged.parameters())
    assert merged(IMAGES).square().mean().item() < start
    # One that is to be distributed again is wrapped again.
    model = nn.parallel.DistributedDataParallel(merged)
    for _ in range(2):
        model(IMAGES).square().mean().backward()
