"""What content is told apart by: digests of JSON values, one by one and together."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.runs.codec import canonical
from metricopt.errors import DataError

FIELD = "digest"
"""Name of the field that holds the digest of all the others."""
SHORT = 12
"""Characters that a page shows of a digest."""


class AlteredError(DataError):
    """A record does not have the content that its digest was made of."""


class SchemaError(DataError):
    """A record has a schema that this code does not read."""


class SpecMismatchError(DataError):
    """A record belongs to another spec than the one it is filed under."""


def digest_of(content: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def content_digest(content: object) -> str:
    """Return the first 128 bits of `digest_of`."""
    return digest_of(content)[:32]


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return content, which has no digest yet, with the digest of all of it."""
    return {**content, FIELD: content_digest(content)}


def check_seal(content: Mapping[str, Any]) -> None:
    """Check what `sealed` returned.

    Raises:
        AlteredError: if anything in it was changed, the digest included.
    """
    found = content_digest({k: v for k, v in content.items() if k != FIELD})
    if content[FIELD] != found:
        raise AlteredError(
            f"the record was altered: its content has the digest {found[:SHORT]}, "
            f"but it was written with {str(content[FIELD])[:SHORT]}"
        )


def joint_digest(digests: Iterable[str]) -> str:
    """Return one short digest of several, which may come in any order."""
    return content_digest(sorted(digests))[:SHORT]
