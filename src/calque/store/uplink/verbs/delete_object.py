"""Delete an object."""

from __future__ import annotations

from calque.errors import (
    ConditionNotMatch,
    NotFound,
    PermissionDenied,
    RateLimited,
    TimedOut,
    Unavailable,
)
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.etags import stream_of
from calque.store.uplink.session import Session


class Deletion:
    """One delete, which may be asked for again after a broken connection.

    The first time it means whatever is at the key. Each further one looks what that is and names
    it: the satellite may be about to do what it was asked before, and a delete that comes late
    and twice must not hit what was uploaded since.
    """

    def __init__(self, session: Session, bucket: str, key: str, if_match: str | None) -> None:
        self.key = key
        self._session = session
        self._bucket = bucket
        self._encrypted = session.locate(bucket, key).encrypted
        self._stream = stream_of(if_match)
        self._was_sent = False

    def run(self) -> bool:
        """Delete it; whether there was one. After a lost answer what is gone was there."""
        if self._was_sent:
            return self.repeat()
        self._was_sent = True
        try:
            return self._send(self._stream)
        except (RateLimited, TimedOut):
            raise
        except Unavailable:
            return self.repeat()

    def message(self) -> pb.ObjectToDelete:
        """This delete as one of many."""
        return pb.ObjectToDelete(
            encrypted_object_key=self._encrypted, if_match_stream_id=self._stream
        )

    def repeat(self) -> bool:
        """Delete it after a try whose answer was lost."""
        found = self._find_stream()
        if found is None:
            return True  # by our own first try, or by somebody else: it is gone either way
        if self._stream and found != self._stream:
            raise ConditionNotMatch("the object is not the one that if_match names")
        try:
            return self._send(found)
        except ConditionNotMatch:
            return True  # the one that was meant has gone in between

    def _find_stream(self) -> bytes | None:
        request = pb.ObjectGetRequest(
            header=self._session.header,
            bucket=self._bucket,
            encrypted_object_key=self._encrypted,
        )
        try:
            return self._session.metainfo.get_object(request).object.stream_id
        except NotFound:
            return None
        except PermissionDenied as error:
            raise Unavailable(
                "the connection broke during a delete: it may be done or not",
                hint="This API key may not look, so ask somebody who may list the bucket.",
                retryable=False,
            ) from error

    def _send(self, stream: bytes) -> bool:
        answer = self._session.metainfo.delete_object(
            pb.ObjectDeleteRequest(
                header=self._session.header,
                bucket=self._bucket,
                encrypted_object_key=self._encrypted,
                if_match_stream_id=stream,
            )
        )
        return answer.deleted


def delete_object(session: Session, bucket: str, key: str, *, if_match: str | None = None) -> bool:
    """Delete the committed object in one transaction; whether there was one.

    Copies of it stay whole: one of them becomes the owner of the pieces.
    """
    return Deletion(session, bucket, key, if_match).run()
