"""What an import and a call load: torch, and nothing heavy that they do not need."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import metricopt

ROOT = Path(metricopt.__file__).parent.parent
HEAVY = (
    *("cma", "gpytorch", "matplotlib", "pandas", "scipy", "sklearn", "torchmetrics"),
    *("torchvision", "timm", "metricopt.sklearn"),
)
FRESH = f"""
import sys
import metricopt.geometry
late = "metricopt.geometry.diagonal"
print(late in sys.modules)
import metricopt, metricopt.detection, metricopt.fewshot, metricopt.learned_optimizers
print([name for name in {HEAVY} if name in sys.modules])
metricopt.geometry.Diagonal
print(late in sys.modules)
"""
CALL = """
import sys

sys.modules["gpytorch"] = None  # as if it were not installed
import torch

import metricopt

asked = []

def error(outputs, targets):
    asked.append(1)
    return (outputs.argmax(1) != targets).double().mean().item()

torch.manual_seed(0)
inputs = torch.randn(200, 2)
labels = (inputs[:, 0] > 1).long()
given = {
    "train": (inputs[:100], labels[:100]),
    "observe": (inputs[100:], labels[100:]),
    "loss": torch.nn.CrossEntropyLoss(),
    "metric": error,
    "higher_is_better": False,
}
metricopt.finetune(torch.nn.Linear(2, 2), **given)
assert asked
# The compiler of torch, which every optimizer of torch loads, takes seconds.
assert "torch._dynamo" not in sys.modules
asked.clear()
for method in ("metricopt", "metricopt-literal", "metricopt-learned"):
    try:
        metricopt.finetune(torch.nn.Linear(2, 2), **given, method=method)
    except metricopt.ConfigError as refused:
        print(len(asked), refused)
"""


def said_by(program: str) -> str:
    """What a fresh process prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-W", "ignore", "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@pytest.fixture(scope="module")
def fresh() -> list[str]:
    return said_by(FRESH).splitlines()


def test_an_import_of_the_library_loads_torch_and_no_more(fresh):
    assert fresh[1] == "[]"
    # What is looked for is there, under these names.
    assert all(map(find_spec, HEAVY))


def test_a_name_is_imported_when_it_is_asked_for(fresh):
    assert (fresh[0], fresh[2]) == ("False", "True")


def test_the_default_method_needs_no_gpytorch_and_the_paper_s_says_so_unasked():
    assert said_by(CALL).splitlines() == 3 * [
        "0 to meta-train a value function, metricopt needs gpytorch: "
        "pip install 'metricopt[paper]'"
    ]
