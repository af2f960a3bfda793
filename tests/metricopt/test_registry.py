"""Registries: names, duplicates, unknown names, the package walk."""

import sys
import types

import pytest

from metricopt.errors import ConfigError
from metricopt.registry import Registry, import_units


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


def test_an_unknown_name_lists_the_known_ones(registry):
    with pytest.raises(ConfigError, match="unknown colour 'pink'; known: blue, red"):
        registry.get("pink")
    with pytest.raises(ConfigError, match="unknown shape 'round'; known: none"):
        Registry("shape").get("round")


def test_registries_share_nothing(registry):
    assert list(Registry("colour")) == []


def test_the_package_walk_imports_every_module(tmp_path, monkeypatch):
    folder = tmp_path / "walked_units"
    folder.mkdir()
    (folder / "__init__.py").write_text("found = []\n")
    for name in ("first", "second"):
        text = f"from walked_units import found\n\nfound.append({name!r})\n"
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    package = __import__("walked_units")
    assert isinstance(package, types.ModuleType)
    import_units(package)
    assert package.found == ["first", "second"]
    import_units(package)
    assert package.found == ["first", "second"]
    for name in ("walked_units", "walked_units.first", "walked_units.second"):
        monkeypatch.delitem(sys.modules, name)
