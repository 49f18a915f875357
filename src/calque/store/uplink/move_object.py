"""Move an object: its row gets another name, in one transaction."""

from __future__ import annotations

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.objects import ObjectInfo, object_info
from calque.store.uplink.rewrap import BeginPage, Conditions, FinishPage, Rewrap, Transfer
from calque.store.uplink.session import Session


class MoveVerbs:
    """Begin and Finish of a move."""

    def __init__(self, session: Session, transfer: Transfer) -> None:
        self._session = session
        self._transfer = transfer

    def begin(self, operation: bytes, cursor: pb.SegmentPosition | None) -> BeginPage:
        answer = self._session.metainfo.begin_move_object(
            pb.ObjectBeginMoveRequest(
                header=self._session.header,
                bucket=self._transfer.old.bucket,
                encrypted_object_key=self._transfer.old.encrypted,
                new_bucket=self._transfer.new.bucket,
                new_encrypted_object_key=self._transfer.new.encrypted,
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
        answer = self._session.metainfo.finish_move_object(
            pb.ObjectFinishMoveRequest(
                header=self._session.header,
                operation_id=page.operation,
                stream_id=page.stream,
                new_bucket=self._transfer.new.bucket,
                new_encrypted_object_key=self._transfer.new.encrypted,
                new_encrypted_metadata_key_nonce=page.metadata.nonce,
                new_encrypted_metadata_key=page.metadata.wrapped_key,
                new_segment_keys=page.keys,
                conditions=self._transfer.conditions.message(),
                partial=page.partial,
            )
        )
        return answer.object if answer.HasField("object") else None


def move_object(
    session: Session,
    old_bucket: str,
    old_key: str,
    new_bucket: str,
    new_key: str,
    *,
    if_not_exists: bool = False,
    if_match: str | None = None,
    source_if_match: str | None = None,
) -> ObjectInfo:
    """Move an object within a project, whatever its size, in one transaction.

    Contents, creation time, etag and copies of it stay as they are. What stood at the new name
    is replaced, unless ``if_not_exists``.
    """
    transfer = Transfer(
        session.locate(old_bucket, old_key),
        session.locate(new_bucket, new_key),
        None,
        Conditions(if_not_exists=if_not_exists, if_match=if_match, source_if_match=source_if_match),
    )
    moved = Rewrap(session, transfer, MoveVerbs(session, transfer)).run()
    return object_info(moved, transfer.new)
