"""Translators of three sizes."""

from benchmarks.networks.translation.contract import (
    TRANSLATORS,
    Translator,
    TranslatorSize,
)
from benchmarks.networks.translation.mask_predict import Passes


@TRANSLATORS.register("tiny")
def tiny(vocabulary: int, length: int) -> Translator:
    """Return one layer of 32, for smoke runs."""
    size = TranslatorSize(32, 1, 2, 64, Passes(2, 2), dropout=0.0)
    return Translator(vocabulary, length, size)


@TRANSLATORS.register("small")
def small(vocabulary: int, length: int) -> Translator:
    """Return two layers of 128, 1.2 million weights with 2,000 pieces."""
    size = TranslatorSize(128, 2, 4, 512, Passes(4, 3))
    return Translator(vocabulary, length, size)


@TRANSLATORS.register("nat-base")
def nat_base(vocabulary: int, length: int) -> Translator:
    """Return six layers of 512 that write every piece once: NAT-Base.

    Source: Gu et al., ICLR 2018, the size of Vaswani et al.'s base model.
    """
    size = TranslatorSize(512, 6, 8, 2_048, Passes(1, 5))
    return Translator(vocabulary, length, size)
