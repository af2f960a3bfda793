"""Turn records of earlier schemas into the current one: dictionaries in and out.

Schema 1 had no field `schema`. Its spec kept everything in one dictionary `settings`,
its results held one metric, and further metrics stood among the notes. Schema 2 had no
digest of the content.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from benchmarks.runs.codec import canonical
from benchmarks.runs.digests import FIELD, AlteredError, sealed
from metricopt.errors import DataError

SCHEMA = 3
"""The schema that is written today."""

Content = dict[str, Any]

PIPELINES = {"dynamic-bias": "tabular", "film": "images"}
"""Name of the pipeline by the kind of adapter."""
PIPELINE_PARTS = (
    "problem",
    "sampling",
    "backbone",
    "adapter",
    "finetune",
    "revision",
)
ALSO = {
    "jaccard": ("jaccard-legacy", "test_legacy"),
    "aucpr": ("aucpr-macro-logits", "test_logits"),
}
"""Second metric of the result and the note it was kept in, by metric of the run."""
TRIALS, DEFAULT_STEPS = 3, 4
"""Fine-tunings per candidate step, and candidates if the settings do not list them."""


class SchemaError(DataError):
    """A record has a schema that this code does not know."""


class SpecMismatchError(DataError):
    """A record belongs to another spec than the one it is filed under."""


def upgrade(content: Content) -> Content:
    """Return the content of a record in the current schema.

    Args:
        content: a record as JSON holds it; left as it is.

    Raises:
        SchemaError: if the record is newer than this code, or its schema is no number.
        SpecMismatchError: if the spec is not the one its digest was made from.
        AlteredError: if it has a digest, and its schema had none.
        KeyError: if the record lacks a field of its schema.
    """
    schema = content.get("schema", 1)
    if type(schema) is not int or schema < 1:
        raise SchemaError(f"expected a schema number of 1 or more, got {schema!r}")
    if schema > SCHEMA:
        raise SchemaError(
            f"the record has schema {schema}, and this code reads up to {SCHEMA}; "
            "update the code to read it"
        )
    if schema == 1:
        content = _from_1(content)
    return _from_2(content) if schema < 3 else content


def digest_of(spec: Mapping[str, Any]) -> str:
    """Return the digest of a spec given as JSON holds it, of any schema."""
    return hashlib.sha256(canonical(spec).encode()).hexdigest()


def _from_1(content: Content) -> Content:
    old = dict(content["spec"])
    stored = old.pop("digest")
    if digest_of(old) != stored:
        raise SpecMismatchError(
            f"the record was written for the spec {stored[:8]}, "
            f"but holds the spec {digest_of(old)[:8]}"
        )
    spec, notes = _spec_from_1(old), dict(content["notes"])
    label = spec["metric"]["name"]
    test = {label: content["test"]} if content["test"] else {}
    if label in ALSO:
        second, note = ALSO[label]
        if note in notes:
            test[second] = notes.pop(note)
    kept = {
        name: value
        for name, value in content.items()
        if name not in ("spec", "trace", "observe", "test", "notes")
    }
    return kept | {
        "schema": 2,
        "spec": spec | {"digest": digest_of(spec)},
        "queried": _queried_from_1(content, spec),
        "trace": [_point_from_1(entry, label) for entry in content["trace"]],
        "observe": {label: content["observe"]} if content["observe"] else {},
        "test": test,
        "notes": notes,
    }


def _from_2(content: Content) -> Content:
    if FIELD in content:
        raise AlteredError(
            "the record was altered: it has a digest, and its schema had none"
        )
    return sealed(content | {"schema": 3})


def _spec_from_1(old: Content) -> Content:
    """Return a spec, without its digest, with its settings in typed parts."""
    settings = dict(old["settings"])
    pipeline = {name: settings.pop(name) for name in PIPELINE_PARTS}
    adapter = dict(pipeline["adapter"])
    name = PIPELINES[adapter.pop("kind")]
    metric = settings.pop("metric")
    also = [ALSO[metric][0]] if metric in ALSO else []
    place = {key: value for key, value in old.items() if key != "settings"}
    # The remaining settings are `arm`, `budget`, `meta_tests` and `diagnose`.
    return place | {
        "pipeline": {"name": name, "settings": pipeline | {"adapter": adapter}},
        "metric": {"name": metric, "settings": {}},
        "also": [{"name": second, "settings": {}} for second in also],
        **settings,
    }


def _point_from_1(entry: Content, label: str) -> Content:
    observe, test = entry["observe"], entry["test"]
    return entry | {
        "observe": {} if observe is None else {label: observe},
        "test": {label: test},
    }


def _queried_from_1(content: Content, spec: Content) -> dict[str, int]:
    """Return all metric evaluations of a run by what they were made on."""
    arm, shared = spec["arm"], content["shared_queries"]
    total = shared + spec["meta_tests"] * (content["queries"] - shared)
    if not total:
        return {}
    if arm["kind"] == "oracle":
        return {"test": total}
    observed = total
    if arm["settings"].get("recipe", {}).get("queries_on") == "train":
        # The step of fine-tuning is chosen on the observe split nevertheless.
        observed = TRIALS * len(arm["settings"].get("steps", range(DEFAULT_STEPS)))
    elif "batch_queries" in content["notes"]:
        observed = content["notes"]["observe_queries"]
    counts = {"observe": observed, "train": total - observed}
    return {name: count for name, count in counts.items() if count}
