"""How often one call runs a network, and turns probabilities into logits and back."""

from collections import Counter
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

import metricopt
from metricopt.reading.meaning import Meaning
from tests.metricopt.digits_network import splits

TRAIN, OBSERVE, _ = splits()


class Uncut(nn.Module):
    """A network whose forward cannot be traced, which counts its runs."""

    def __init__(self, probabilities: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(64, 16), nn.Linear(16, 10)
        self.probabilities, self.runs = probabilities, 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.runs += 1
        if inputs.sum() > 1e9:
            return inputs
        logits = self.last(self.first(inputs.flatten(1)).relu())
        return logits.softmax(1) if self.probabilities else logits


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts conversions of outputs with a link."""
    counts: Counter[str] = Counter()

    def count(name: str) -> None:
        plain = getattr(Meaning, name)

        def counted(self: Meaning, outputs: Tensor, **leading: int) -> Tensor:
            counts[name] += self.link is not None
            return plain(self, outputs, **leading)

        monkeypatch.setattr(Meaning, name, counted)

    count("inward")
    count("outward")
    return counts


@pytest.mark.parametrize("probabilities", [False, True])
def test_checks_and_queries_share_runs_and_conversions(
    conversions: Counter[str], probabilities: bool
) -> None:
    network, seen = Uncut(probabilities), []

    def accuracy(outputs: Tensor, targets: Tensor) -> float:
        seen.append((network.runs, conversions["inward"], conversions["outward"]))
        return (outputs.argmax(1) == targets).double().mean().item()

    metricopt.finetune(
        network,
        train=TRAIN,
        observe=OBSERVE,
        loss=nn.NLLLoss() if probabilities else nn.CrossEntropyLoss(),
        metric=accuracy,
        higher_is_better=True,
        outputs="probabilities" if probabilities else None,
        method="random-search",
        queries=9,
        no_harm=False,
        progress=False,
    )
    # What outputs mean, which layers run, a phi alone, another in two halves, both
    # together, phi as applied, as predicted, the loss, all outputs.
    assert seen[0][0] == 10
    # Nor do the first query, the one in another order, those of the direction and
    # phi = 0 of the method run it: they share the outputs.
    assert seen[4][0] == seen[0][0]
    # Of the other queries each has one run, one way to logits and one way back; the
    # last one judges what was best, which may be phi = 0 again.
    for before, after in pairwise(seen[4:-1]):
        each = tuple(b - a for a, b in zip(before, after, strict=True))
        assert each == (1, probabilities, probabilities)
