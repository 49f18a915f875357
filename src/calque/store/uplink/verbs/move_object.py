"""Move an object: its row gets another name, in one transaction."""

from __future__ import annotations

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


class MoveCalls(TransferCalls):
    """The messages of a move."""

    def send_begin(self, fields: dict[str, Any]) -> pb.ObjectBeginMoveResponse:
        return self.metainfo.begin_move_object(pb.ObjectBeginMoveRequest(**fields))

    def send_finish(self, fields: dict[str, Any], page: FinishPage) -> pb.ObjectFinishMoveResponse:
        return self.metainfo.finish_move_object(pb.ObjectFinishMoveRequest(**fields))


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
    old, new = session.locate(old_bucket, old_key), session.locate(new_bucket, new_key)
    conditions = Conditions(
        if_not_exists=if_not_exists, if_match=if_match, source_if_match=source_if_match
    )
    return move(session, Transfer(old, new, conditions))


def move(session: Session, transfer: Transfer) -> ObjectInfo:
    """Carry a move out; the target may have been located by another access to the project."""
    return Rewrap(session, MoveCalls(session, transfer)).run()
