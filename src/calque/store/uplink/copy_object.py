"""Copy an object: one metadata transaction, whatever its size."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.objects import ObjectInfo, object_info
from calque.store.uplink.rewrap import BeginPage, Conditions, FinishPage, Rewrap, Transfer
from calque.store.uplink.session import Session


class CopyVerbs:
    """Begin and Finish of a copy."""

    def __init__(self, session: Session, transfer: Transfer) -> None:
        self._session = session
        self._transfer = transfer

    def begin(self, operation: bytes, cursor: pb.SegmentPosition | None) -> BeginPage:
        answer = self._session.metainfo.begin_copy_object(
            pb.ObjectBeginCopyRequest(
                header=self._session.header,
                bucket=self._transfer.old.bucket,
                encrypted_object_key=self._transfer.old.encrypted,
                new_bucket=self._transfer.new.bucket,
                new_encrypted_object_key=self._transfer.new.encrypted,
                override_metadata=self._transfer.metadata is not None,
                operation_id=operation,
                cursor=cursor,
                limit=self._session.limits.keys_per_request,
            )
        )
        return BeginPage(
            operation=answer.operation_id,
            stream=answer.stream_id,
            suite=answer.encryption_parameters.cipher_suite,
            metadata_nonce=answer.encrypted_metadata_key_nonce,
            metadata_key=answer.encrypted_metadata_key,
            keys=tuple(answer.segment_keys),
            total=answer.segment_count,
            more=answer.more,
        )

    def finish(self, page: FinishPage) -> pb.Object | None:
        answer = self._session.metainfo.finish_copy_object(
            pb.ObjectFinishCopyRequest(
                header=self._session.header,
                operation_id=page.operation,
                stream_id=page.stream,
                new_bucket=self._transfer.new.bucket,
                new_encrypted_object_key=self._transfer.new.encrypted,
                new_encrypted_metadata_key_nonce=page.metadata.nonce,
                new_encrypted_metadata_key=page.metadata.wrapped_key,
                new_encrypted_metadata=page.metadata.encrypted,
                override_metadata=self._transfer.metadata is not None,
                new_segment_keys=page.keys,
                conditions=self._transfer.conditions.message(),
                partial=page.partial,
            )
        )
        return answer.object if answer.HasField("object") else None


class Copy:
    """A copy that the caller drives: ``step`` until None; ``operation`` resumes it elsewhere."""

    def __init__(self, session: Session, transfer: Transfer) -> None:
        self._new = transfer.new
        self._rewrap = Rewrap(session, transfer, CopyVerbs(session, transfer))

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
