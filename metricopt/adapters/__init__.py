"""Adapters: a frozen network theta with a few parameters phi."""

from metricopt.adapters.base import Adapter, Features
from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.export import fingerprint, load_phi, save_phi
from metricopt.adapters.film import FiLM
from metricopt.adapters.sites import last_site, stage_sites

__all__ = [
    "Adapter",
    "DynamicBias",
    "Features",
    "FiLM",
    "fingerprint",
    "last_site",
    "load_phi",
    "save_phi",
    "stage_sites",
]
