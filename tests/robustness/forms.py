"""Digits as sequences of tokens, and small networks that take and return many forms."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from metricopt import LazySplit, Split

COUNT, PLACES, WORDS = 90, 8, 17


@cache
def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return pixels [N, 64], brightness of rows as tokens, a mask, and labels."""
    pixels, labels = load_digits(return_X_y=True)
    chosen = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(pixels)[chosen[:COUNT]]
    tokens = images.view(COUNT, PLACES, 8).mean(2).round().long()
    # Sequences end with their last row that is not dark.
    ends = (tokens > 0).long().cumsum(1).argmax(1)
    mask = (torch.arange(PLACES) <= ends[:, None]).long()
    return (images / 16).float(), tokens, mask, torch.tensor(labels)[chosen[:COUNT]]


@dataclass
class Output(OrderedDict):
    """What a network of Hugging Face returns: a dict whose fields are attributes."""

    logits: Any = None
    hidden_states: Any = None
    loss: Any = None

    def __post_init__(self) -> None:
        for name in ("logits", "hidden_states", "loss"):
            if getattr(self, name) is not None:
                self[name] = getattr(self, name)


@dataclass(frozen=True)
class Frozen:
    """A plain dataclass that cannot be written on."""

    scores: Tensor
    note: str = "one tensor"


class Named(NamedTuple):
    """A named tuple."""

    hidden: Tensor
    logits: Tensor


def _model_output(logits: Tensor, hidden: Tensor) -> Output:
    return Output(logits=logits, hidden_states=(hidden, hidden))


RETURNED: dict[str, tuple[Callable[[Tensor, Tensor], Any], Callable[[Any], Tensor]]] = {
    "tensor": (lambda logits, _: logits, lambda got: got),
    "dict": (lambda logits, h: {"hidden": h, "logits": logits}, itemgetter("logits")),
    "dict of one": (lambda logits, _: {"values": logits}, itemgetter("values")),
    "segmentation": (lambda out, h: OrderedDict(out=out, aux=h), itemgetter("out")),
    "model output": (_model_output, attrgetter("logits")),
    "model output by key": (_model_output, itemgetter("logits")),
    "dataclass": (lambda logits, _: Frozen(logits), attrgetter("scores")),
    "named tuple": (lambda logits, h: Named(h, logits), attrgetter("logits")),
    "tuple of one": (lambda logits, _: (logits,), itemgetter(0)),
    "tuple with more": (lambda logits, h: (logits, (h, h)), itemgetter(0)),
    "list of one": (lambda logits, _: [logits], itemgetter(0)),
}
"""How a network returns its logits, and how a user reads them."""


class Returning(nn.Module):
    """A network whose logits come in one of the forms of `RETURNED`."""

    def __init__(self, form: str = "tensor") -> None:
        super().__init__()
        self.form = form

    def returned(self, logits: Tensor, hidden: Tensor) -> Any:
        return RETURNED[self.form][0](logits, hidden)


class Rows(Returning):
    """A network of one input, [N, 64]."""

    def __init__(self, form: str = "tensor") -> None:
        super().__init__(form)
        self.body, self.head = nn.Linear(64, 6), nn.Linear(6, 10)

    def forward(self, pixels: Tensor) -> Any:
        hidden = self.body(pixels).tanh()
        return self.returned(self.head(hidden), hidden)


class Halves(Returning):
    """A network of two inputs, [N, 24] and [N, 40]."""

    def __init__(self, form: str = "tensor") -> None:
        super().__init__(form)
        self.first, self.second = nn.Linear(24, 6), nn.Linear(40, 6)
        self.head = nn.Linear(6, 10)

    def forward(self, above: Tensor, below: Tensor) -> Any:
        hidden = (self.first(above) + self.second(below)).tanh()
        return self.returned(self.head(hidden), hidden)


class Text(Returning):
    """A transformer of token numbers with a mask, as Hugging Face calls one."""

    def __init__(
        self, form: str = "tensor", *, nested: bool = False, batch_first: bool = True
    ) -> None:
        super().__init__(form)
        self.words, self.places = nn.Embedding(WORDS, 8), nn.Embedding(PLACES, 8)
        self.batch_first = batch_first
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested)
        self.head = nn.Linear(8, 10)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Any:
        hidden = self.words(input_ids) + self.places.weight
        mask = None if attention_mask is None else attention_mask == 0
        turned = hidden if self.batch_first else hidden.movedim(1, 0)
        turned = self.encoder(turned, src_key_padding_mask=mask)
        hidden = turned if self.batch_first else turned.movedim(0, 1)
        if attention_mask is not None:
            hidden = hidden * attention_mask[..., None]
        return self.returned(self.head(hidden.sum(1)), hidden)


def made(network: type[nn.Module], *arguments: Any, **settings: Any) -> nn.Module:
    """Return a network with fixed random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return network(*arguments, **settings).eval()


class Listed(Dataset):
    """Examples as they are listed."""

    def __init__(self, examples: list) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, place: int) -> Any:
        return self.examples[place]


def of_all(function: Callable[[Tensor], Any], inputs: Any) -> Any:
    """Return inputs with a function applied to each tensor."""
    if isinstance(inputs, dict):
        return {name: function(part) for name, part in inputs.items()}
    if isinstance(inputs, tuple | list):
        return type(inputs)(map(function, inputs))
    return function(inputs)


def listed(inputs: Any, targets: Tensor) -> list:
    """Return the examples one by one, as pairs."""
    return [(at_place(inputs, at), target) for at, target in enumerate(targets)]


def at_place(inputs: Any, at: int) -> Any:
    """Return the inputs of one example."""
    return of_all(lambda part: part[at], inputs)


def _arrays(inputs: Any) -> Any:
    return of_all(Tensor.numpy, inputs)


GIVEN: dict[str, Callable[[Any, Tensor], Any]] = {
    "pair": lambda inputs, targets: (inputs, targets),
    "numpy": lambda inputs, targets: (_arrays(inputs), targets.numpy()),
    "data set": lambda inputs, targets: Listed(listed(inputs, targets)),
    "loader": lambda inputs, targets: DataLoader(Listed(listed(inputs, targets)), 32),
    "split": Split,
    "split of numpy": lambda inputs, targets: Split(_arrays(inputs), targets.numpy()),
    "lazy": lambda inputs, targets: LazySplit(listed(inputs, targets)),
    "lazy numpy": lambda inputs, targets: LazySplit(
        listed(_arrays(inputs), targets.numpy())
    ),
}
"""How a user gives examples."""
