"""Registries: names, duplicates, unknown names, the package walk."""

import sys

import pytest

from metricopt.errors import ConfigError
from metricopt.registry import Registry


@pytest.fixture
def registry():
    found = Registry("colour")
    found.register("red")("#f00")
    found.register("blue")("#00f")
    return found


def test_names_are_sorted_and_looked_up(registry):
    assert list(registry) == ["blue", "red"]
    assert registry.get("red") == "#f00"
    assert "red" in registry
    assert "green" not in registry
    # Registries share nothing.
    assert list(Registry("colour")) == []


def test_the_decorator_returns_what_it_registers(registry):
    @registry.register("green")
    def green():
        return 1

    assert green() == 1
    assert registry.get("green") is green


def test_a_name_is_taken_once(registry):
    with pytest.raises(ConfigError, match="a colour named 'red' is registered already"):
        registry.register("red")("#e00")
    assert registry.get("red") == "#f00"


def test_units_are_subclasses_of_the_base():
    numbers = Registry("number", base=int)
    numbers.register("truth")(bool)
    for unit in (str, 3, lambda: 3):
        with pytest.raises(ConfigError, match="number must be a subclass of int, got"):
            numbers.register("other")(unit)
    assert list(numbers) == ["truth"]


def test_an_unknown_name_lists_the_known_ones(registry):
    with pytest.raises(ConfigError, match="unknown colour 'pink'; known: blue, red"):
        registry.get("pink")
    with pytest.raises(ConfigError, match="unknown shape 'round'; known: none"):
        Registry("shape").get("round")


def test_the_first_look_up_imports_every_module_once(tmp_path, monkeypatch):
    folder = tmp_path / "walked_units"
    (folder / "deep").mkdir(parents=True)
    (folder / "__init__.py").write_text("found = []\n")
    (folder / "deep" / "__init__.py").write_text("")
    for name in ("first", "deep/second"):
        text = f"from walked_units import found\n\nfound.append({name!r})\n"
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("unit", "walked_units")
    assert "walked_units" not in sys.modules
    assert list(registry) == []
    assert sys.modules["walked_units"].found == ["deep/second", "first"]
    assert "first" not in registry
    assert sys.modules["walked_units"].found == ["deep/second", "first"]
    for name in [name for name in sys.modules if name.startswith("walked_units")]:
        monkeypatch.delitem(sys.modules, name)
