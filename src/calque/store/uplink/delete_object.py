"""Delete an object."""

from __future__ import annotations

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.etags import stream_of
from calque.store.uplink.session import Session


def delete_object(session: Session, bucket: str, key: str, *, if_match: str | None = None) -> bool:
    """Delete the committed object in one transaction; whether there was one.

    Copies of it stay whole: one of them becomes the owner of the pieces.
    """
    answer = session.metainfo.delete_object(
        pb.ObjectDeleteRequest(
            header=session.header,
            bucket=bucket,
            encrypted_object_key=session.locate(bucket, key).encrypted,
            if_match_stream_id=stream_of(if_match),
        )
    )
    return answer.deleted
