"""Digits, a network for them, and short calls of `finetune` to compare."""

from dataclasses import dataclass, replace
from functools import cache, partial

import torch
from sklearn.metrics import f1_score
from torch import Tensor, nn

from metricopt import Budget, Finetuned, FinetuneOptions, Method, finetune
from metricopt.methods.result import Evidence, FinetuneResult, last_step
from tests.metricopt.digits_network import pretrained, splits

TRAIN, OBSERVE, TEST = splits()
MACRO_F1 = partial(f1_score, average="macro")
QUICK = FinetuneOptions(
    "random-search", queries=12, steps=4, no_harm=False, progress=False
)

# A declared direction is tried on outputs that are perfect, and inverted.
TRIED = 2


def improve(model: nn.Module, options: FinetuneOptions = QUICK, **other) -> Finetuned:
    given = {
        "train": TRAIN,
        "observe": OBSERVE,
        "loss": nn.CrossEntropyLoss(),
        "metric": MACRO_F1,
    }
    return finetune(model, **(given | other), options=options)


@cache
def found_by_default(queries: int) -> Finetuned:
    """What the default method finds on the network that has most to gain."""
    return improve(pretrained(1), FinetuneOptions(queries=queries, progress=False))


@torch.no_grad()
def macro_f1(model: nn.Module, split: tuple[Tensor, Tensor]) -> float:
    return f1_score(split[1], model(split[0]).argmax(1), average="macro")


@dataclass(frozen=True)
class Proposes(Method):
    """Proposes one number everywhere, after a number of queries of its own."""

    value: float
    queries: int = 0
    evidence: tuple[Evidence, ...] = ()

    def run(
        self, task, budget: Budget, generator, *, rows: int = 1, prepared=None
    ) -> FinetuneResult:
        phi = torch.full((rows, 1, task.size), self.value)
        for _ in range(self.queries):
            task.observe(phi[:, 0])
        found = last_step(phi, shared_queries=self.queries)
        return replace(found, evidence=self.evidence)
