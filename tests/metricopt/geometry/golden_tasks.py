"""Maps, starts and losses of the golden cases of the authors' code."""

import torch
from torch.nn.functional import cross_entropy

from metricopt.geometry import BlockIAF, Kronecker, ParameterShapes


def golden_map(case):
    """The map of a case, and its weights by the names of the golden file."""
    start = case.inputs.get("z", case.inputs.get("z_0"))
    blocks = [block.split(",") for block in case.settings["blocks"].split("|")]
    factors = tuple(int(each) for each in case.settings["embed_shrink"].split(","))
    kronecker = Kronecker(factors, heads="all-modes-zero")
    built = BlockIAF(start, blocks, scale="exp", conditioner=kronecker).double()
    weights = dict(_named_weights(built))
    given = case.inputs["map"]
    assert {n: w.shape for n, w in weights.items()} == {
        n: w.shape for n, w in given.items()
    }
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(given[name])
    return built, weights


def _named_weights(built):
    yield "first_block_log_scale", built.first_a
    yield "first_block_shift", built.first_shift
    for place, encoder in enumerate(built.encoders):
        for name, each in zip(built.blocks[place], encoder.encoders, strict=True):
            yield from _layers(f"encoder.{name}", each.layers)
    for place, decoder in enumerate(built.decoders, start=1):
        for name, weight in decoder.dense.named_parameters():
            yield f"linear.block{place}.{name}", weight
        for name, each in zip(built.blocks[place], decoder.decoders, strict=True):
            yield from _layers(f"decoder.{name}", each.layers)
            yield from _layer(f"log_scale_head.{name}", each.a)
            yield from _layer(f"shift_head.{name}", each.shift)


def _layers(name, layers):
    for place, layer in enumerate(layers):
        yield from _layer(f"{name}.layer{place}", layer)


def _layer(name, layer):
    yield f"{name}.bias", layer.bias
    for mode, matrix in enumerate(layer.matrices):
        yield f"{name}.mode{mode}", matrix


def golden_loss(case, part):
    """The support or the query loss of a case, of named parameters."""
    inputs = {
        name.removeprefix(f"{part}_"): value
        for name, value in case.inputs.items()
        if name.startswith(part)
    }
    kind = case.settings["loss"]
    if kind == "quadratic":
        shapes = ParameterShapes(case.inputs["z_0"])

        def quadratic(phi):
            off = shapes.flat(phi) - inputs["c"]
            return off @ inputs["A"] @ off / 2

        return quadratic
    logits = _linear if kind == "softmax_regression" else _tanh_network
    return lambda phi: cross_entropy(logits(phi, inputs["x"]), inputs["y"])


def _linear(phi, x):
    return x @ phi["t0"].T + phi["t1"]


def _tanh_network(phi, x):
    return (x @ phi["t0"].T + phi["t1"]).tanh() @ phi["t2"].T + phi["t3"]
