"""Copy an object: one metadata transaction, whatever its size."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.objects import ObjectInfo
from calque.store.uplink.session import Session
from calque.store.uplink.verbs.rewrap import (
    Conditions,
    FinishPage,
    Rewrap,
    Transfer,
    TransferCalls,
)


class CopyCalls(TransferCalls):
    """The messages of a copy."""

    def send_begin(self, fields: dict[str, Any]) -> pb.ObjectBeginCopyResponse:
        return self.metainfo.begin_copy_object(
            pb.ObjectBeginCopyRequest(**fields, override_metadata=self._override)
        )

    def send_finish(self, fields: dict[str, Any], page: FinishPage) -> pb.ObjectFinishCopyResponse:
        return self.metainfo.finish_copy_object(
            pb.ObjectFinishCopyRequest(
                **fields,
                new_encrypted_metadata=page.metadata.encrypted,
                override_metadata=self._override,
            )
        )

    @property
    def _override(self) -> bool:
        return self.transfer.metadata is not None


class Copy(Rewrap):
    """A copy that the caller drives: ``step`` until None; ``operation`` resumes it elsewhere."""

    def __init__(self, session: Session, transfer: Transfer) -> None:
        super().__init__(session, CopyCalls(session, transfer))


def copy_object(
    session: Session,
    old_bucket: str,
    old_key: str,
    new_bucket: str,
    new_key: str,
    *,
    metadata: Mapping[str, str] | None = None,
    if_not_exists: bool = False,
    if_match: str | None = None,
    source_if_match: str | None = None,
    source_if_unmodified_since: datetime | None = None,
) -> ObjectInfo:
    """Copy an object within a project; the target is old or new, never half.

    Keys are re-wrapped for the new name and nothing else is touched: no byte is read, none is
    decrypted. ``metadata`` replaces the source's in the same transaction, which also checks every
    condition. The expiry is the source's. Onto itself: without ``metadata`` nothing changes.
    """
    copy = prepare_copy(
        session,
        old_bucket,
        old_key,
        new_bucket,
        new_key,
        metadata=metadata,
        conditions=Conditions(
            if_not_exists=if_not_exists,
            if_match=if_match,
            source_if_match=source_if_match,
            source_if_unmodified_since=source_if_unmodified_since,
        ),
    )
    return copy.run()


def prepare_copy(
    session: Session,
    old_bucket: str,
    old_key: str,
    new_bucket: str,
    new_key: str,
    *,
    metadata: Mapping[str, str] | None = None,
    conditions: Conditions | None = None,
) -> Copy:
    """A copy that the caller drives page by page and may resume in another process.

    Nothing is sent yet.
    """
    old, new = session.locate(old_bucket, old_key), session.locate(new_bucket, new_key)
    return Copy(session, Transfer(old, new, conditions or Conditions(), metadata))
