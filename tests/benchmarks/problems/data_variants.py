"""Variants of data sets that are taken to be here, whether they are or not."""


def set_variants(monkeypatch, variant_of):
    """Let `variant_of(name)` say which variant of a data set is here."""
    monkeypatch.setattr(
        "benchmarks.problems.problem.resolve_variant",
        lambda name, *, offline: variant_of(name),
    )


def variants_are_full(monkeypatch):
    """Take all data sets to be here, complete."""
    set_variants(monkeypatch, lambda name: "full")
