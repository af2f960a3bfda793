"""Read golden vectors: inputs and expected outputs made by official or peer code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

FOLDER = Path(__file__).parent / "data" / "golden"
DTYPES = {"float64": torch.float64, "int64": torch.int64, "bool": torch.bool}


class Case(NamedTuple):
    name: str
    settings: dict[str, Any]
    inputs: dict[str, Any]
    expected: dict[str, Any]
    tolerance: dict[str, float]


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and "dtype" in value:
        dtype = DTYPES[value["dtype"]]
        data = [float(x) if isinstance(x, str) else x for x in value["data"]]
        return torch.tensor(data, dtype=dtype).reshape(value["shape"])
    if isinstance(value, dict):
        return {key: _decode(item) for key, item in value.items()}
    return float(value) if value in ("nan", "inf", "-inf") else value


def load_golden(name: str) -> Iterator[Case]:
    """Yield the cases of one golden file, arrays as tensors."""
    content = json.loads((FOLDER / f"{name}.json").read_text())
    for case in content["cases"]:
        yield Case(
            case["name"],
            case.get("settings", {}),
            _decode(case["inputs"]),
            _decode(case["expected"]),
            content["tolerance"],
        )


def assert_golden(actual: Any, expected: Any, tolerance: dict[str, float]) -> None:
    """Compare with the tolerance of the file; NaN equals NaN."""
    actual = torch.as_tensor(actual, dtype=torch.float64)
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)
