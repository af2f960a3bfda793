"""Inputs and outputs of every form: reported is what the applied model does."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import metricopt
from metricopt import ConfigError, DataError, Finetuned, FinetuneOptions, ShapeError
from metricopt.tasks.examples import as_split
from tests.robustness.forms import (
    GIVEN,
    RETURNED,
    Halves,
    Listed,
    Rows,
    Text,
    at_place,
    digits,
    listed,
    made,
    of_all,
)
from tests.robustness.refused import refusal

PIXELS, TOKENS, MASK, LABELS = digits()
HALVES = (PIXELS[:, :24], PIXELS[:, 24:])
NAMED = {"below": HALVES[1], "above": HALVES[0]}  # in another order than arguments
TEXT = {"input_ids": TOKENS, "attention_mask": MASK}
QUIET = {"no_harm": False, "progress": False}
# To raise the log loss of a network that was not trained, any other phi will do.
RAISED = {"higher_is_better": True, "check_direction": False, "low": 0.0, "high": 20}
OPTIONS = FinetuneOptions("random-search", queries=8, **QUIET, **RAISED, seed=3)
CASES: dict[str, tuple[type[nn.Module], Any]] = {
    "one input": (Rows, PIXELS),
    "a tuple": (Halves, HALVES),
    "a list": (Halves, list(HALVES)),
    "a dict": (Halves, NAMED),
    "tokens": (Text, TOKENS),
    "tokens with a mask": (Text, TEXT),
}
FAST = ("a tuple", "a dict", "one input")
"""Cases that are tried in every container."""


def called(model: nn.Module, inputs: Any) -> Any:
    """Return what a model returns, called as its user would."""
    with torch.no_grad():
        if isinstance(inputs, dict):
            return model(**inputs)
        return model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)


def measured(model: nn.Module, inputs: Any) -> float:
    """Return the log loss of a model on all digits."""
    logits = RETURNED[model.form][1](called(model, inputs))
    return float(sk.log_loss(LABELS.numpy(), logits.double().softmax(1).numpy()))


def found_on(model: nn.Module, data: Any, observe: Any = None) -> Finetuned:
    """Fine-tune a model towards a greater log loss."""
    given = {"train": data, "observe": data if observe is None else observe}
    given |= {"loss": nn.CrossEntropyLoss(), "metric": sk.log_loss}
    return metricopt.finetune(model, **given, options=OPTIONS)


@cache
def of_halves() -> Tensor:
    """Return the phi of the plain network of two inputs."""
    return found_on(made(Halves), (NAMED, LABELS)).phi


def check(model: nn.Module, data: Any, inputs: Any) -> Finetuned:
    """Fine-tune a model, and compare what is reported with the applied model."""
    before = measured(model, inputs)
    found = found_on(model, data)
    assert found.metric_before == pytest.approx(before, abs=1e-5)
    found.apply()
    after = measured(model, inputs)
    kind = type(called(model, inputs))
    found.remove()
    assert found.metric_after == pytest.approx(after, abs=1e-5)
    assert after > before + 1e-3
    assert measured(model, inputs) == pytest.approx(before, abs=1e-6)
    assert type(called(model, inputs)) is kind
    return found


@pytest.mark.parametrize(
    ("case", "given"),
    [(case, given) for case in CASES for given in GIVEN if case in FAST]
    + [("a list", "pair"), ("tokens", "pair"), ("tokens with a mask", "loader")],
)
def test_inputs_of_every_form_in_every_container(case: str, given: str) -> None:
    network, inputs = CASES[case]
    assert check(made(network), GIVEN[given](inputs, LABELS), inputs)


@pytest.mark.parametrize(
    ("kind", "key"),
    [("dict", "label"), ("dict", "targets")]
    + [(kind, "labels") for kind in ("loader", "data set", "lazy")],
)
def test_a_dict_with_labels_is_inputs_and_targets(kind: str, key: str) -> None:
    whole = TEXT | {key: LABELS}
    single = [at_place(whole, at) for at in range(len(LABELS))]
    data = {
        "dict": whole,
        "loader": DataLoader(Listed(single), 32),
        "data set": Listed(single),
        "lazy": metricopt.LazySplit(single),
    }[kind]
    assert check(made(Text, "model output"), data, TEXT)


@pytest.mark.parametrize("form", RETURNED)
def test_outputs_of_every_form(form: str) -> None:
    found = check(made(Halves, form), (NAMED, LABELS), NAMED)
    assert torch.equal(found.phi, of_halves())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("settings", [{"nested": True}, {"batch_first": False}])
def test_transformers_of_torch_in_any_layout(settings: dict[str, bool]) -> None:
    found = check(made(Text, **settings), (TEXT, LABELS), TEXT)
    assert found.adapter.parts["adapter"] == slice(16)


def test_gradients_of_a_text_network_reach_phi() -> None:
    model = made(Text, "model output")
    adapter = metricopt.auto_adapter(model, of_all(lambda part: part[:4], TEXT))
    phi = torch.zeros(1, adapter.size, requires_grad=True)
    outputs = adapter.predict(adapter.encode(TEXT), phi)
    loss = nn.functional.cross_entropy(outputs[0], LABELS)
    (slope,) = torch.autograd.grad(loss, phi)
    assert all(slope[0, place].norm() > 0 for place in adapter.parts.values())
    with adapter.attach(-0.1 * slope[0]):
        logits = called(model, TEXT).logits
    assert nn.functional.cross_entropy(logits, LABELS) < loss


@pytest.mark.parametrize("sites", [["encoder.layers.1.norm2"], ["head"]])
def test_a_text_network_is_modulated_at_any_layer(sites: list[str]) -> None:
    model = made(Text)
    few = of_all(lambda part: part[:4], TEXT)
    adapter = metricopt.FiLM(model, few, sites=sites, form="direct")
    assert adapter.is_cut == (sites == ["head"])
    phi = torch.randn(2, adapter.size, generator=torch.Generator().manual_seed(0))
    outputs = adapter.predict(adapter.encode(TEXT), phi)
    grouped = adapter.predict_grouped(adapter.encode(TEXT), phi)
    for row, part in enumerate(phi):
        with adapter.attach(part):
            expected = called(model, TEXT)
        assert torch.allclose(outputs[row], expected, atol=1e-5)
        half = slice(45 * row, 45 * row + 45)
        assert torch.allclose(grouped[row], expected[half], atol=1e-5)


def test_a_network_of_two_inputs_is_cut_where_both_are_known() -> None:
    model = made(Halves)
    adapter = metricopt.FiLM(model, HALVES, sites=["head"], form="direct")
    assert adapter.is_cut
    assert [tuple(part.shape) for part in adapter.encode(HALVES)] == [(90, 10)]
    early = metricopt.FiLM(model, HALVES, sites=["second"], form="direct")
    assert early.is_cut
    assert len(early.encode(HALVES)) == 2


def test_the_order_of_keys_does_not_matter() -> None:
    swapped = dict(reversed(TEXT.items()))
    first = found_on(made(Text), (TEXT, LABELS), (swapped, LABELS))
    assert torch.equal(first.phi, found_on(made(Text), (TEXT, LABELS)).phi)


def test_arrays_that_torch_cannot_share_are_copied() -> None:
    held = PIXELS.numpy().copy()
    held.flags.writeable = False
    backwards = held[:, ::-1]
    for given in (held, backwards, np.asfortranarray(held)):
        split = as_split((given, LABELS.numpy()), name="train", device=LABELS.device)
        assert np.array_equal(split.inputs.numpy(), given)
        assert torch.equal(split.targets, LABELS)


# What is refused.

THREE = "of (Tensor, Tensor, Tensor); give several inputs as ((first, second), targets)"
NAMES = "; give classes as whole numbers from 0 to C - 1, as scikit-learn's LabelEnc"
SHORT, WORDS = of_all(lambda x: x[:, :5], TEXT), {"text": ["a"] * 90, "labels": LABELS}
REFUSED: dict[str, tuple[Any, str]] = {
    "three tensors": ((*HALVES, LABELS), THREE),
    "batches of three": (TensorDataset(*HALVES, LABELS), THREE),
    "a tensor": (PIXELS, "must be a pair of tensors"),
    "batches of one": (TensorDataset(PIXELS), "got list of (Tensor)"),
    "nothing": (None, "got NoneType"),
    "one label": ((PIXELS, LABELS[0]), "got shapes [90, 64] and []"),
    "a dict alone": (TEXT, "got dict of (input_ids: Tensor, attention_mask: Tensor)"),
    "texts": (WORDS, "got dict of (text: list, labels: Tensor)"),
    "objects": ((np.array([object()] * 90), LABELS), "got tuple of (ndarray, Tensor)"),
    "names": ((PIXELS, np.array(["a", "b"] * 45)), f"of (Tensor, ndarray){NAMES}"),
    "listed names": ((PIXELS, ["a", "b"] * 45), f"got tuple of (Tensor, list){NAMES}"),
    "names by name": ({"x": PIXELS, "labels": ["a"] * 90}, f"labels: list){NAMES}"),
    "one name": ((PIXELS, np.array("a")), f"of (Tensor, ndarray){NAMES}"),
    "no names": ((PIXELS, []), "got tuple of (Tensor, list)"),
    "no inputs": (((), LABELS), "got tuple of (tuple, Tensor)"),
    "labels alone": ({"labels": LABELS}, "got dict of (labels: Tensor)"),
    "lengths": (({"a": TOKENS, "b": MASK[:50]}, LABELS), "50 inputs and 90 targets"),
    "ragged": (
        DataLoader([(TOKENS, LABELS), (TOKENS[:, :5], LABELS)], None),
        "must have one shape, got [5], [8]; pad or crop them",
    ),
    "forms": (DataLoader([(TEXT, LABELS), (TOKENS, LABELS)], None), "one form, got {"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_forms_of_inputs_are_refused(case: str) -> None:
    data, text = REFUSED[case]
    with pytest.raises(DataError) as caught:
        as_split(data, name="train", device=LABELS.device)
    assert text in str(caught.value)
    assert "the train split" in str(caught.value)


def test_a_network_that_does_not_know_a_name_is_refused() -> None:
    text = r"cannot run on the .* inputs, {'ids': int64 \[4, 8\]}: .*argument 'ids'"
    data = ({"ids": TOKENS}, LABELS)
    assert refusal(DataError, text, model=made(Text), train=data, observe=data)


def test_splits_of_two_forms_are_refused() -> None:
    """The mask of the second would have been dropped without a word."""
    text = "form of the first ones, tensors named 'input_ids', got tensors named 'att"
    without = {"input_ids": TOKENS}
    data = {"train": (without, LABELS), "observe": (TEXT, LABELS)}
    assert refusal(ShapeError, text, model=made(Text), **data)


class Two(nn.Module):
    """Returns tensors of which none is named."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.body, self.kind = nn.Linear(64, 10), kind

    def forward(self, pixels: Tensor) -> Any:
        one = self.body(pixels)
        found = {"dict": {"a": one, "b": one, "c": 3}, "list": [one, one], "none": None}
        return found[self.kind]


@pytest.mark.parametrize(
    ("kind", "got"),
    [
        ("dict", r"dict of \(a: Tensor, b: Tensor, c: int\)"),
        ("list", r"list of \(Tensor, Tensor\)"),
        ("none", r"NoneType of \(\)"),
    ],
)
def test_outputs_that_name_no_tensor_are_refused(kind: str, got: str) -> None:
    text = f"must return one tensor, .*, got {got}: wrap it in a module"
    data = (PIXELS, LABELS)
    assert refusal(ConfigError, text, model=Two(kind), train=data, observe=data)


def test_an_example_that_is_no_input_is_refused_when_it_is_read() -> None:
    mixed = [*listed(TEXT, LABELS)[:1], *listed(TOKENS, LABELS)[:1]]
    for examples, text in (
        ([({"text": "a"}, 0)] * 2, r"must be a tensor, .*got dict of \(text: str"),
        (mixed, "inputs of one split must have one form, got "),
    ):
        lazy = metricopt.LazySplit(examples)
        with pytest.raises(DataError, match=text):
            lazy.batch(slice(2))


@pytest.mark.parametrize("form", [np.asarray, torch.as_tensor])
def test_a_function_of_known_outputs_gets_the_form_they_were_given_in(
    form: Any,
) -> None:
    """The mean of zeros and ones is one to numpy, and to torch an error."""
    got = []

    def within(outputs: Any, targets: Any, tolerance: Any) -> Any:
        got.extend(map(type, (outputs, targets, tolerance)))
        near = abs(outputs - targets) < tolerance
        return near.mean() if form is np.asarray else near.double().mean()

    values = torch.linspace(0, 9, 60, dtype=torch.float64)
    given = form(1.5 * values), form(values)
    found = metricopt.tune(
        *given,
        within,
        columns={"tolerance": torch.ones(60)},
        higher_is_better=True,
        queries=20,
        progress=False,
    )
    assert set(got) == {type(given[0])}
    assert found.metric_after > 0.9 > found.metric_before


def share_within(outputs: Any, targets: Any, tolerance: Any) -> float:
    """Read arrays and tensors alike."""
    return float((abs(outputs - targets) < tolerance).sum()) / len(targets)


def tune_in(form: Any, **settings: Any) -> metricopt.Tuned:
    """Tune values towards a function of them, of targets and of a column."""
    values = np.linspace(0, 9, 60)
    return metricopt.tune(
        form(1.5 * values),
        form(values),
        share_within,
        columns=pd.DataFrame({"tolerance": np.ones(60)}),
        higher_is_better=True,
        **{"queries": 20, "progress": False} | settings,
    )


@pytest.fixture(scope="module")
def of_arrays(tmp_path_factory: pytest.TempPathFactory) -> tuple[metricopt.Tuned, Path]:
    """What a call with arrays found, and its checkpoint."""
    path = tmp_path_factory.mktemp("arrays") / "checkpoint"
    return tune_in(np.asarray, checkpoint=path), path


def test_a_checkpoint_of_arrays_goes_on_with_tensors(
    of_arrays: tuple[metricopt.Tuned, Path],
) -> None:
    first, path = of_arrays
    again = tune_in(torch.as_tensor, checkpoint=path)
    assert again.spent.queries == first.spent.queries
    assert torch.equal(again.offsets, first.offsets)


def test_arrays_may_be_written_backwards(
    of_arrays: tuple[metricopt.Tuned, Path],
) -> None:
    swapped = tune_in(lambda values: values.astype(">f8"))
    assert torch.equal(swapped.offsets, of_arrays[0].offsets)


def test_targets_of_bfloat16_beside_an_array_are_read() -> None:
    values = torch.arange(60.0)
    found = metricopt.tune(
        (1.5 * values).numpy(),
        values.bfloat16(),
        lambda outputs, targets: abs(outputs - targets).mean(),
        higher_is_better=False,
        queries=20,
        progress=False,
    )
    assert found.metric_after < found.metric_before
