"""Variants of data sets that are taken to be here, whether they are or not."""

RESOLVING = ("tabular", "images")
"""Kinds of problems that resolve the variant of their data."""


def set_variants(monkeypatch, variant_of):
    """Let `variant_of(name)` say which variant of a data set is here."""
    for kind in RESOLVING:
        monkeypatch.setattr(
            f"benchmarks.problems.{kind}.tiers.resolve_variant",
            lambda name, *, offline: variant_of(name),
        )


def variants_are_full(monkeypatch):
    """Take all data sets to be here, complete."""
    set_variants(monkeypatch, lambda name: "full")
