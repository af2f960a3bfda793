"""Released weights of tests lie in a folder of their own."""

from tests.benchmarks.problems.own_weights import own_weights  # noqa: F401
