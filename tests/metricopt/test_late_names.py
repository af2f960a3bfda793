"""Names that packages offer late; that they are late is in test_imports."""

import pytest

import metricopt.geometry
from metricopt.geometry.diagonal import Diagonal
from metricopt.late_names import late_names


def test_a_late_name_is_what_its_module_has():
    assert metricopt.geometry.Diagonal is Diagonal


def test_names_come_from_modules_of_the_package_and_of_others():
    offered = late_names("metricopt.geometry", {"Diagonal": ".diagonal", "tau": "math"})
    assert offered("Diagonal") is Diagonal
    assert offered("tau") == pytest.approx(6.2832, abs=1e-4)


def test_a_name_that_is_not_offered_is_no_attribute():
    with pytest.raises(AttributeError, match=r"'metricopt.geometry' has no attribut"):
        _ = metricopt.geometry.Diagnoal
