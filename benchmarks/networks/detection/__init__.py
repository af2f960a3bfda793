"""Detectors of the benchmarks."""
