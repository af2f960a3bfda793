"""BERT as a reader, which may start from the weights of MacBERT.

Source: Devlin et al., NAACL 2019; Cui et al., Findings of EMNLP 2020, whose MacBERT has
BERT's network.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.networks.contract import Pretrained, State
from benchmarks.networks.reading.contract import (
    QUESTION,
    READERS,
    Reader,
    with_ends,
)
from metricopt.errors import ConfigError

PAGE = (
    "https://huggingface.co/hfl/chinese-macbert-base/resolve/"
    "a986e004d2a7f2a1c2f5a3edef4e20604a974ed1"
)
PIECES, PLACES = 21_128, 512
"""Pieces of the vocabulary, and places, of MacBERT."""
EPSILON = 1e-12
"""What the normalisations of BERT add to a variance."""
EMBEDDINGS = {
    "word_embeddings": "characters",
    "position_embeddings": "places",
    "token_type_embeddings": "segments",
    "LayerNorm": "first",
}
LAYERS = {
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}
"""Names that torch's layer has for the modules of a BERT of transformers."""
ATTENTION = ("query", "key", "value")
"""Projections of attention, which are one in torch's layer."""


@dataclass(frozen=True)
class BertSize:
    """How large a BERT is.

    Attributes:
        width: size E of the vector at every place.
        layers: transformer layers.
        heads: heads of attention.
        dropout: share of numbers that are dropped in training.
    """

    width: int
    layers: int
    heads: int
    dropout: float = 0.1


class BertBody(nn.Module):
    """BERT from inputs int64 [N, 3, L] to a vector of every place, [N, L, E].

    Inputs are those of every reader; of matches BERT knows nothing.

    Args:
        vocabulary: numbers of pieces.
        places: most places.
        size: how large it is.
    """

    def __init__(self, vocabulary: int, places: int, size: BertSize) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, size.width, padding_idx=0)
        self.places = nn.Embedding(places, size.width)
        self.segments = nn.Embedding(2, size.width)
        self.first = nn.LayerNorm(size.width, EPSILON)
        self.dropout = nn.Dropout(size.dropout)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                size.width,
                size.heads,
                4 * size.width,
                size.dropout,
                activation="gelu",
                layer_norm_eps=EPSILON,
                batch_first=True,
            )
            for _ in range(size.layers)
        )
        for layer in self.layers:
            # Torch's layer drops numbers between its two linear maps, too.
            layer.dropout = nn.Identity()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the vectors."""
        ids, segments, _ = inputs.unbind(1)
        parts = (segments - QUESTION).clamp(min=0)
        hidden = self.characters(ids) + self.segments(parts)
        hidden = hidden + self.places.weight[: ids.shape[1]]
        hidden = self.dropout(self.first(hidden))
        empty = ids == 0
        for layer in self.layers:
            hidden = layer(hidden, src_key_padding_mask=empty)
        return hidden


def bert(vocabulary: int, places: int, size: BertSize) -> Reader:
    """Return BERT, one more normalisation where FiLM stands, and both ends."""
    return with_ends(BertBody(vocabulary, places, size), size.width)


@READERS.register("macbert-base")
def macbert_base(vocabulary: int, length: int) -> Reader:
    """Return a network of MacBERT's size, twelve layers of 768.

    Raises:
        ConfigError: if pieces are not those of MacBERT, or places too many.
    """
    if vocabulary != PIECES or length > PLACES:
        raise ConfigError(
            f"MacBERT has {PIECES} pieces and at most {PLACES} places, got "
            f"{vocabulary} and {length}"
        )
    network = bert(PIECES, PLACES, BertSize(768, 12, 12))
    network.pretrained = MACBERT
    return network


def of_transformers(state: State) -> State:
    """Return the tensors of a BERT of Hugging Face's transformers, by our names.

    What is no part of its encoder, such as heads, is left out.

    Args:
        state: tensors by name, as a `state_dict` of any `Bert...` class has them.
    """
    found: State = {}
    projections: dict[tuple[str, str], State] = defaultdict(dict)
    for name, tensor in state.items():
        # Old files have TensorFlow's names of a normalisation.
        plain = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        plain = plain.replace("LayerNorm.beta", "LayerNorm.bias")
        module, _, kind = plain.rpartition(".")
        of = re.fullmatch(r"(?:bert\.)?embeddings\.(\w+)", module)
        if of and of[1] in EMBEDDINGS:
            found[f"body.{EMBEDDINGS[of[1]]}.{kind}"] = tensor
        of = re.fullmatch(r"(?:bert\.)?encoder\.layer\.(\d+)\.(.+)", module)
        if of and of[2] in LAYERS:
            found[f"body.layers.{of[1]}.{LAYERS[of[2]]}.{kind}"] = tensor
        elif of and (part := of[2].removeprefix("attention.self.")) in ATTENTION:
            projections[of[1], kind][part] = tensor
    return found | _joined(projections)


def _joined(projections: Mapping[tuple[str, str], State]) -> State:
    """Return the projections of every layer in one; none where one is missing."""
    return {
        f"body.layers.{layer}.self_attn.in_proj_{kind}": torch.cat(
            [parts[name] for name in ATTENTION]
        )
        for (layer, kind), parts in projections.items()
        if parts.keys() == set(ATTENTION)
        and len({part.shape for part in parts.values()}) == 1
    }


MACBERT = Pretrained(
    "chinese-macbert-base.pth",
    left_out=(),
    added=("norm", "ends"),
    url=f"{PAGE}/pytorch_model.bin",
    # As others recorded it: the page names none.
    sha256="db0506d985574b80c33eec1cf13bd4c130585568753175871095ca13dbad9e23",
    renamed=of_transformers,
)
"""The weights of MacBERT-base."""
