"""Readers that begin at random, in two sizes."""

from benchmarks.networks.reading.contract import (
    READERS,
    Reader,
    ReaderSize,
    reader,
)


@READERS.register("tiny")
def tiny(vocabulary: int, length: int) -> Reader:
    """Return one layer of 32, for smoke runs."""
    return reader(vocabulary, length, ReaderSize(32, 1, 2, dropout=0.0))


@READERS.register("small")
def small(vocabulary: int, length: int) -> Reader:
    """Return two layers of 96, 0.6 million weights with 3,000 characters."""
    return reader(vocabulary, length, ReaderSize(96, 2, 4, dropout=0.2))
