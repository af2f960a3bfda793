"""Names that packages offer late: imported when they are asked for, not before."""

import subprocess
import sys

import pytest

import metricopt.geometry
from metricopt.geometry.diagonal import Diagonal
from metricopt.late_names import late_names
from tests.source_tree import ROOT

LATE = """
import sys
import metricopt.geometry
assert "metricopt.geometry.diagonal" not in sys.modules
metricopt.geometry.Diagonal
assert "metricopt.geometry.diagonal" in sys.modules
"""


def test_a_name_is_imported_when_it_is_asked_for():
    assert metricopt.geometry.Diagonal is Diagonal
    done = subprocess.run([sys.executable, "-P", "-c", LATE], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_names_come_from_modules_of_the_package_and_of_others():
    offered = late_names("metricopt.geometry", {"Diagonal": ".diagonal", "tau": "math"})
    assert offered("Diagonal") is Diagonal
    assert offered("tau") == pytest.approx(6.2832, abs=1e-4)


def test_a_name_that_is_not_offered_is_no_attribute():
    with pytest.raises(AttributeError, match=r"'metricopt.geometry' has no attribut"):
        _ = metricopt.geometry.Diagnoal
