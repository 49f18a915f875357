"""Copy an object: one metadata transaction, whatever its size."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.objects import ObjectInfo, object_info
from calque.store.uplink.rewrap import Conditions, FinishPage, Rewrap, Transfer, Verbs
from calque.store.uplink.session import Session


class CopyVerbs(Verbs):
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


class Copy:
    """A copy that the caller drives: ``step`` until None; ``operation`` resumes it elsewhere."""

    def __init__(self, session: Session, transfer: Transfer) -> None:
        self._new = transfer.new
        self._rewrap = Rewrap(session, CopyVerbs(session, transfer))

    @property
    def operation(self) -> bytes | None:
        return self._rewrap.operation

    @property
    def finished(self) -> bool:
        """Whether the copy is committed."""
        return self._rewrap.finished

    @property
    def fraction(self) -> float:
        """The share of the segments whose keys were sent, from 0 to 1."""
        return self._rewrap.fraction

    def resume(self, operation: bytes) -> None:
        """Go on with a copy that another process began, with the same access and arguments."""
        self._rewrap.resume(operation)

    def begin(self) -> None:
        """Ask for the first page of keys; from now on there is an ``operation``."""
        self._rewrap.begin()

    def step(self) -> int | None:
        """Send one page of keys; how many, or None once the copy is committed."""
        return self._rewrap.step()

    def result(self) -> ObjectInfo:
        return object_info(self._rewrap.result(), self._new)


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
    while copy.step() is not None:
        pass
    return copy.result()


def prepare_copy(
    session: Session,
    old_bucket: str,
    old_key: str,
    new_bucket: str,
    new_key: str,
    *,
    metadata: Mapping[str, str] | None,
    conditions: Conditions,
) -> Copy:
    """A copy to be driven; nothing is sent yet."""
    transfer = Transfer(
        session.locate(old_bucket, old_key),
        session.locate(new_bucket, new_key),
        metadata,
        conditions,
    )
    return Copy(session, transfer)
