"""``--verify``: both sides are compared once more after a copy."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

from calque.cli.locations import Location
from calque.errors import IntegrityError
from calque.values import Metadata

if TYPE_CHECKING:
    from calque.cli.copy_job import CopyReport

Proof = Literal["checksums", "bytes"]


def compare(source: Location, target: Location, copied: CopyReport) -> Proof:
    """Raise IntegrityError unless both sides hold the same bytes; say what proves it.

    Checksums that both services keep are enough; else both sides are read and hashed, pinned to
    the versions that were copied and made.
    """
    ours, theirs = copied.source_metadata.checksum, copied.metadata.checksum
    if ours and theirs and ours.algorithm == theirs.algorithm:
        _agree(copied, ours.value, theirs.value)
        return "checksums"
    _agree(copied, _hash(source, copied.source_metadata), _hash(target, copied.metadata))
    return "bytes"


def _agree(copied: CopyReport, ours: str, theirs: str) -> None:
    if ours != theirs:
        raise IntegrityError(
            f"{copied.target} does not hold what {copied.source} holds: {theirs} is not {ours}",
            hint="The target is there and is wrong: copy again, or delete it.",
        )


def _hash(location: Location, metadata: Metadata) -> str:
    can = location.operator.capability
    stream = location.operator.read_stream(
        location.path,
        if_match=metadata.pin if can.read_with_if_match else None,
        version=metadata.version if can.read_with_version else None,
    )
    digest = hashlib.sha256()
    for chunk in stream:
        digest.update(chunk)
    return digest.hexdigest()
