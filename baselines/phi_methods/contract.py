"""The registry of rival methods; their contract is that of the library's methods."""

from metricopt.methods.contract import Method
from metricopt.registry import Registry

RIVALS: Registry[type[Method]] = Registry("rival", "baselines.phi_methods")
"""Methods that only comparisons need, so they are no part of the library."""
