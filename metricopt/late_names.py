"""Names that a package offers without importing them before they are asked for."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def late_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package, which imports a name on first access.

    Args:
        package: name of the package.
        homes: the module of every name; one that begins with a dot is in the package.
    """

    def offered(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name], package), name)

    return offered
