"""The vocabulary of sentences: pieces of words, learned by sentencepiece."""

import hashlib
import io
from collections.abc import Sequence
from functools import cached_property

import sentencepiece
import torch

from benchmarks.runs.artifacts import Artifact, get_or_make
from metricopt.errors import DataError
from metricopt.structured.sentences import MASK, NOTHING, RESERVED, SPELLED, UNKNOWN

KIND = "vocabularies"
SPACE = "▁"
"""What sentencepiece writes for a space."""
STRANGE = " ⁇ "
"""What an unknown character is written as: no reference has it."""


class Vocabulary:
    """Pieces by byte-pair encoding, of both languages together.

    Args:
        model: what sentencepiece learned.

    Source: Sennrich et al., ACL 2016; Kudo and Richardson, EMNLP 2018.
    """

    def __init__(self, model: bytes) -> None:
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    @classmethod
    def of(cls, sentences: Sequence[str], size: int) -> "Vocabulary":
        """Return the vocabulary of some sentences, read from the cache if it is there.

        Every character of them is a piece.

        Args:
            sentences: those of training, in both languages.
            size: numbers there are, the reserved ones among them.

        Raises:
            DataError: if the sentences do not have as many pieces.
        """
        content = "\n".join(sentences).encode()
        key = {
            "sentences": hashlib.sha256(content).hexdigest(),
            "size": size,
            "sentencepiece": sentencepiece.__version__,
        }

        def make() -> Artifact:
            model = bytearray(_learned(sentences, size))
            return Artifact({"model": torch.frombuffer(model, dtype=torch.uint8)}, {})

        return cls(get_or_make(KIND, key, make).tensors["model"].numpy().tobytes())

    @cached_property
    def texts(self) -> list[str]:
        """The text of every piece, with its spaces."""
        pieces = map(self._processor.id_to_piece, range(len(self)))
        texts = [piece.replace(SPACE, " ") for piece in pieces]
        return ["", STRANGE, "", *texts[RESERVED:]]

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encoded(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the pieces of every sentence, UNKNOWN for characters outside."""
        found: list[list[int]] = self._processor.encode(list(sentences))
        return found


def _learned(sentences: Sequence[str], size: int) -> bytes:
    content = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=content,
            model_type="bpe",
            vocab_size=size,
            max_sentencepiece_length=SPELLED,
            character_coverage=1.0,
            # The text as it is: BLEU is of the references as they are.
            normalization_rule_name="identity",
            num_threads=1,
            minloglevel=2,
            pad_id=NOTHING,
            unk_id=UNKNOWN,
            bos_id=-1,
            eos_id=-1,
            control_symbols=["<mask>"],
        )
    except RuntimeError as error:
        raise DataError(
            f"{len(sentences)} sentences do not have a vocabulary of {size} pieces: "
            f"{' '.join(str(error).split())}"
        ) from error
    found = content.getvalue()
    processor = sentencepiece.SentencePieceProcessor(model_proto=found)
    # Reserved numbers are in this order, and the first piece follows them.
    assert processor.piece_to_id("<mask>") == MASK == RESERVED - 1
    return found
