"""Conditions on source and destination, checked inside the transaction that commits."""

from __future__ import annotations

from dataclasses import dataclass

from calque.errors import AlreadyExists, ConditionNotMatch, InvalidInput, PermissionDenied
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import ObjectRecord


@dataclass(frozen=True)
class Conditions:
    """What must be true of the destination, and of the source of a copy or move.

    Contents are named by their stream id.
    """

    if_not_exists: bool = False
    if_match: bytes | None = None
    source_if_match: bytes | None = None
    source_if_unmodified_since: int | None = None

    def __post_init__(self) -> None:
        if self.if_not_exists and self.if_match is not None:
            raise InvalidInput("if_not_exists and if_match contradict each other")
        if self.if_match is not None:
            verify.stream_id(self.if_match, "if_match stream id")
        if self.source_if_match is not None:
            verify.stream_id(self.source_if_match, "source_if_match stream id")

    def check_target(self, existing: ObjectRecord | None, *, may_overwrite: bool) -> None:
        """Refuse unless the live object at the destination (or none) is as demanded."""
        if self.if_match is not None and (existing is None or existing.stream_id != self.if_match):
            raise ConditionNotMatch("the destination is not the object that if_match names")
        if existing is None:
            return
        if self.if_not_exists:
            raise AlreadyExists("the destination exists already and if_not_exists was asked")
        if not may_overwrite:
            raise PermissionDenied(
                "the destination exists and this key may not delete, so it may not overwrite"
            )

    def check_source(self, source: ObjectRecord) -> None:
        """Refuse unless the source is as demanded."""
        if self.source_if_match is not None and source.stream_id != self.source_if_match:
            raise ConditionNotMatch("the source is not the object that if_match names")
        since = self.source_if_unmodified_since
        if since is not None and source.created_at > since:
            raise ConditionNotMatch("the source was modified after the time given")


NO_CONDITIONS = Conditions()
