"""Readers that begin at random, in two sizes."""

from benchmarks.networks.reading.contract import READERS, Reader
from benchmarks.networks.reading.convolutional import (
    ConvolutionalSize,
    convolutional_reader,
)


@READERS.register("tiny-convolutions")
def tiny_convolutions(vocabulary: int, length: int) -> Reader:
    """Return two convolutions of width 32, for smoke runs."""
    size = ConvolutionalSize(32, before=(1,), after=(1,), dropout=0.0)
    return convolutional_reader(vocabulary, size)


@READERS.register("small")
def small(vocabulary: int, length: int) -> Reader:
    """Return eleven convolutions of width 96, 1.4 million weights."""
    dilations = (1, 2, 4, 8)
    size = ConvolutionalSize(96, before=dilations[:3], after=2 * dilations)
    return convolutional_reader(vocabulary, size)
