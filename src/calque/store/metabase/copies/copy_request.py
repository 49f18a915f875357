"""The second half of a copy as it is asked for, and its values for the statements of both ways."""

from __future__ import annotations

from dataclasses import dataclass

from calque.errors import InvalidInput
from calque.store.metabase.copies.operations import Operation
from calque.store.metabase.engine.transaction import Parameters
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.conditions import NO_CONDITIONS, Conditions
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import ObjectLocation, WrappedMetadata, new_stream_id
from calque.store.metabase.streams.lookup import at


@dataclass(frozen=True)
class FinishCopy:
    """The second half of a copy.

    ``keys`` are the last (or only) re-wrapped keys. Without ``override_metadata`` the
    ``metadata`` carries only the re-wrapped metadata key and its nonce.
    """

    operation: Operation
    source: ObjectLocation
    source_stream_id: bytes
    target: ObjectLocation
    keys: PackedKeys
    metadata: WrappedMetadata
    override_metadata: bool = False
    conditions: Conditions = NO_CONDITIONS
    may_overwrite: bool = True

    def __post_init__(self) -> None:
        verify.location(self.source)
        verify.location(self.target, "new")
        verify.stream_id(self.source_stream_id)
        verify.metadata(self.metadata, "new")
        if self.metadata.data and not self.override_metadata:
            raise InvalidInput("new metadata came without override_metadata")
        if self.source.project_id != self.target.project_id:
            raise InvalidInput("source and destination belong to different projects")

    def parameters(self, now: int) -> Parameters:
        """The values for ``rules.py`` and for the rows of the copy, which gets a new stream."""
        return {
            **at(self.target),
            "source_bucket": self.source.bucket,
            "source_key": self.source.key,
            "source_stream": self.source_stream_id,
            "new_stream": new_stream_id(now),
            "now": now,
            "override": self.override_metadata,
            "rewrapped": bool(self.metadata.key),
            "metadata_nonce": self.metadata.nonce,
            "metadata": self.metadata.data,
            "metadata_key": self.metadata.key,
            "operation_id": self.operation.operation_id,
        }
