"""Wrong options are refused by a sentence; names are answered with the nearest ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import RandomSampler

from metricopt import (
    METHODS,
    METRICS,
    BalancedSampler,
    ConfigError,
    FiLM,
    FinetuneOptions,
    MetricOptOutputs,
    NaturalSampler,
    OutputOffsets,
    make_metric,
)
from metricopt.errors import described
from metricopt.tasks.sampling import Sampler
from tests.metricopt import adapter_networks
from tests.robustness.refused import IMAGES, INPUTS, OPTIONS, outcome, refusal

WHOLE = "must be a whole number, got "
SITES = "sites must be a list of module names, 'stages' or None, got "
SETTINGS = {
    "text for queries": ({"queries": "50"}, f"queries {WHOLE}'50'"),
    "share of queries": ({"queries": 50.0}, f"queries {WHOLE}50.0"),
    "no queries": ({"queries": None}, f"queries {WHOLE}None"),
    "true queries": ({"queries": True}, f"queries {WHOLE}True"),
    "list of queries": ({"queries": [50]}, rf"queries {WHOLE}\[50\]"),
    "numpy's float": ({"queries": np.float32(9)}, rf"queries {WHOLE}np.float32\(9.0\)"),
    "nan": ({"steps": float("nan")}, f"steps {WHOLE}nan"),
    "text for steps": ({"steps": "9"}, f"steps {WHOLE}'9'"),
    "text for seed": ({"seed": "lucky"}, f"seed {WHOLE}'lucky'"),
    "no seed": ({"seed": None}, f"seed {WHOLE}None"),
    "size of a tensor": ({"size": torch.zeros(2)}, rf"size {WHOLE}float32 \[2\]"),
    "negative queries": ({"queries": -1}, "queries must be at least 3, .* got -1"),
    "negative steps": ({"steps": -5}, "steps must be at least 1, got -5"),
    "no size": ({"size": 0}, "size must be at least 1, got 0"),
    "absurd queries": (
        {"queries": 10**9},
        "queries must be at most 100,000, as every queried phi .*, got 1,000,000,000",
    ),
    "absurd steps": (
        {"steps": 10**9},
        "steps must be at most 100,000, as every phi .* is kept, got 1,000,000,000",
    ),
    "absurd size": (
        {"size": 10**9},
        "size must be at most 10,000, as a search keeps .*, got 1,000,000,000",
    ),
    "absurd numpy queries": ({"queries": np.int64(10**12)}, "at most 100,000"),
    "sampler of torch": (
        {"sampler": RandomSampler(range(9))},
        "sampler must be a Sampler or None, got a RandomSampler",
    ),
    "sampler's class": (
        {"sampler": BalancedSampler},
        r"sampler must be .*, got the class BalancedSampler: pass BalancedSampler\(",
    ),
    "sampler's name": ({"sampler": "balanced"}, "must be a Sampler .*, got 'balanced'"),
    "adapter's class": (
        {"adapter": FiLM},
        r"adapter must be 'auto' or an adapter, got the class FiLM: pass FiLM\(...\)",
    ),
    "another class": (
        {"adapter": nn.Linear},
        "adapter must be .*, got the class Linear$",
    ),
    "adapter's name": ({"adapter": "Auto"}, "must be 'auto' or an adapter, got 'Auto'"),
    "no adapter": ({"adapter": None}, "must be 'auto' or an adapter, got None"),
    "method's class": (
        {"method": MetricOptOutputs},
        r"a name or a Method, got the class MetricOptOutputs: pass MetricOptOutputs\(",
    ),
    "no method": ({"method": None}, "method must be a name or a Method, got None"),
    "one site": ({"sites": "layer4"}, f"{SITES}'layer4'"),
    "stage": ({"sites": "stage"}, f"{SITES}'stage'"),
    "a module": ({"sites": nn.ReLU()}, rf"{SITES}ReLU\(\)"),
    "modules": ({"sites": [nn.ReLU()]}, rf"{SITES}\[ReLU\(\)\]"),
    "direction": ({"higher_is_better": "yes"}, "True, False or None, got 'yes'"),
    "caution": ({"no_harm": 1}, "no_harm must be True or False, got 1"),
    "progress": ({"progress": "no"}, "progress must be True or False, got 'no'"),
    "checkpoint": ({"checkpoint": ""}, "the name of a file or None, got ''$"),
    "known": ({"known": {}}, r"known must be what load_known\(path\) or .* got {}"),
}
METHOD_NAMES = {
    "metricopt_outputs": "'metricopt-outputs' or ",
    "MetricOpt": "'metricopt' or ",
    "cmaes": "'cma-es'",
    "auot": r"'auto'\?",
    "random": r"'random-search'\?",
}
METRIC_NAMES = {
    "f_macro": "f-macro",
    "AUCPR": "aucpr",
    "gmean": "g-mean",
    "topk": "top-k",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_wrong_options_are_refused(name: str) -> None:
    settings, text = SETTINGS[name]
    with pytest.raises(ConfigError, match=text) as caught:
        FinetuneOptions(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_a_method_that_is_misspelled_is_answered_with_the_nearest(name: str) -> None:
    """The message listed all methods, without "auto"."""
    meant = f"untouched, auto; did you mean {METHOD_NAMES[name]}"
    with pytest.raises(ConfigError, match=f"unknown method {name!r}; known: .*{meant}"):
        FinetuneOptions(name)


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_a_metric_that_is_misspelled_is_answered_with_the_nearest(name: str) -> None:
    meant = METRIC_NAMES[name]
    assert meant in METRICS
    text = f"unknown metric {name!r}; known: .*; did you mean '{meant}'"
    assert refusal(ConfigError, text, metric=name)


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown metric 'zzz'; known: .*worst-class-"
    ) as caught:
        make_metric("zzz")
    assert "did you mean" not in str(caught.value)


def test_a_site_that_is_misspelled_is_answered_with_the_nearest() -> None:
    model = adapter_networks.randomise(adapter_networks.ResNet())
    images = {"model": model, "train": IMAGES, "observe": IMAGES}
    options = FinetuneOptions("untouched", queries=3, progress=False, sites=["bn"])
    text = "unknown site 'bn' in ResNet; nearest: 'stage2.bn2', "
    assert refusal(ConfigError, text, options=options, **images)


def test_whole_numbers_of_numpy_are_taken() -> None:
    """`FinetuneOptions(queries=np.int64(5))` was refused."""
    numbers = {"queries": np.int64(5), "steps": np.int32(2), "seed": np.uint8(0)}
    options = FinetuneOptions(
        "random-search", no_harm=False, progress=False, **numbers, size=torch.tensor(16)
    )
    assert type(options.queries) is type(options.size) is int
    assert torch.equal(outcome(options=options)[0], outcome(options=OPTIONS)[0])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"model": adapter_networks.ResNet}, r"the class ResNet: pass ResNet\(...\)"),
        ({"model": lambda x: x}, "model must be a torch.nn.Module, got .*lambda"),
        ({"model": None}, "model must be a torch.nn.Module, got None"),
        ({"options": {"queries": 9}}, "must be a FinetuneOptions, got {'queries'"),
        ({"options": FinetuneOptions}, "class FinetuneOptions: pass FinetuneOptions"),
        ({"metric": None}, "a metric must be a Metric, a registered name"),
        ({"check_point": "file"}, "unknown option 'check_point'.* mean 'check"),
    ],
)
def test_other_arguments_of_the_wrong_kind_are_refused(
    changes: dict, text: str
) -> None:
    assert refusal(ConfigError, text, **changes)


@pytest.mark.parametrize("size", ["8", 8.0, None, True])
def test_the_size_of_a_batch_is_a_whole_number(size: object) -> None:
    with pytest.raises(ConfigError, match="batch_size must be a whole number, got "):
        NaturalSampler(60, size)


def test_an_adapter_of_another_model_is_refused() -> None:
    adapter = FiLM(adapter_networks.randomise(adapter_networks.ResNet()), IMAGES[0])
    options = FinetuneOptions("untouched", queries=3, adapter=adapter)
    assert refusal(ConfigError, "was made for another model", options=options)


def test_every_method_is_named_by_its_own_name() -> None:
    for name in METHODS:
        assert FinetuneOptions(name).method == name


def test_values_are_described_in_a_few_words() -> None:
    assert described(torch.zeros(2, 3)) == "float32 [2, 3]"
    assert described("x" * 100) == "a str"
    assert described(list(range(99))) == "a list of 99: int, int, int, int, ..."
    assert described(OutputOffsets) == "the class OutputOffsets"
    assert described(INPUTS.numpy()) == "a ndarray"


class Places(Sampler):
    """Draws what it was given."""

    def __init__(self, places: object) -> None:
        super().__init__(4)
        self.places = places

    def draw(self, rows: int, generator: torch.Generator) -> object:
        return self.places


@pytest.mark.parametrize(
    ("sampler", "got"),
    [
        (NaturalSampler(10**6, 128), r"int64 \[1, 128\] from \d+ to \d+"),
        (Places(torch.full((1, 4), -1)), r"int64 \[1, 4\] from -1 to -1"),
        (Places(torch.zeros(1, 4)), r"float32 \[1, 4\]"),
        (Places(torch.zeros(4, dtype=torch.int64)), r"int64 \[4\]"),
        (Places([0, 1, 2, 3]), r"\[0, 1, 2, 3\]"),
    ],
    ids=["of other data", "negative", "floats", "one axis", "a list"],
)
def test_a_sampler_that_draws_no_places_is_refused(sampler: Sampler, got: str) -> None:
    options = replace(OPTIONS, sampler=sampler)
    text = rf"must draw int64 \[rows, n\] in \[0, 59\], .* 60 train examples, got {got}"
    assert refusal(ConfigError, text, options=options)
