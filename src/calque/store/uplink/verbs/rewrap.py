"""A copy or a move on the client's side: pages of wrapped keys, unwrapped and wrapped anew.

Both are the same two calls. Begin gives keys page by page; Finish takes them page by page and the
last call commits everything in one transaction. A client that was killed midway goes on where the
satellite says it stopped. No content is read, no content is decrypted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from calque.errors import InvalidInput
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_timestamp
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.cipher import Sealed
from calque.store.uplink.encryption.metadata import (
    SealedMetadata,
    rewrap_metadata_key,
    seal_metadata,
)
from calque.store.uplink.encryption.segment_keys import Position, SegmentKeyRewrap
from calque.store.uplink.etags import stream_of
from calque.store.uplink.objects import ObjectInfo, object_info
from calque.store.uplink.plain_names import name_missing_object
from calque.store.uplink.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What must hold in the committing transaction; etags are those of :class:`ObjectInfo`."""

    if_not_exists: bool = False
    if_match: str | None = None
    source_if_match: str | None = None
    source_if_unmodified_since: datetime | None = None

    def __post_init__(self) -> None:
        if self.if_not_exists and self.if_match is not None:
            raise InvalidInput("if_not_exists and if_match cannot both hold: choose one")

    def message(self) -> pb.CopyConditions:
        return pb.CopyConditions(
            if_not_exists=self.if_not_exists,
            if_match_stream_id=stream_of(self.if_match),
            source_if_match_stream_id=stream_of(self.source_if_match),
            source_if_unmodified_since=as_timestamp(self.source_if_unmodified_since),
        )


@dataclass(frozen=True, slots=True)
class Transfer:
    """From which name to which, under which conditions; ``metadata`` None keeps the source's."""

    old: Located
    new: Located
    conditions: Conditions
    metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class BeginPage:
    """One answer of Begin, of a copy or of a move."""

    operation: bytes
    stream: bytes
    suite: int
    metadata_nonce: bytes
    metadata_key: bytes
    keys: tuple[pb.EncryptedKeyAndNonce, ...]
    total: int
    more: bool


@dataclass(frozen=True, slots=True)
class FinishPage:
    """One call of Finish, of a copy or of a move."""

    operation: bytes
    stream: bytes
    keys: list[pb.EncryptedKeyAndNonce]
    metadata: SealedMetadata
    partial: bool


BeginAnswer = pb.ObjectBeginCopyResponse | pb.ObjectBeginMoveResponse
FinishAnswer = pb.ObjectFinishCopyResponse | pb.ObjectFinishMoveResponse


class TransferCalls(ABC):
    """Begin and Finish of one transfer; a copy and a move differ in the messages they send."""

    def __init__(self, session: Session, transfer: Transfer) -> None:
        self.metainfo = session.metainfo
        self.transfer = transfer
        self._session = session

    @abstractmethod
    def send_begin(self, fields: dict[str, Any]) -> BeginAnswer:
        """Begin with the fields that copies and moves have in common."""

    @abstractmethod
    def send_finish(self, fields: dict[str, Any], page: FinishPage) -> FinishAnswer:
        """Finish with the fields that copies and moves have in common."""

    def begin(self, operation: bytes, cursor: pb.SegmentPosition | None) -> BeginPage:
        """One page of keys; the first (without ``operation``) begins."""
        answer = self.send_begin(
            {
                "header": self._session.header,
                "bucket": self.transfer.old.bucket,
                "encrypted_object_key": self.transfer.old.encrypted,
                "new_bucket": self.transfer.new.bucket,
                "new_encrypted_object_key": self.transfer.new.encrypted,
                "operation_id": operation,
                "cursor": cursor,
                "limit": self._session.limits.keys_per_request,
            }
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
        """Send one page of keys; the object once the last has come."""
        answer = self.send_finish(
            {
                "header": self._session.header,
                "operation_id": page.operation,
                "stream_id": page.stream,
                "new_bucket": self.transfer.new.bucket,
                "new_encrypted_object_key": self.transfer.new.encrypted,
                "new_encrypted_metadata_key_nonce": page.metadata.nonce,
                "new_encrypted_metadata_key": page.metadata.wrapped_key,
                "new_segment_keys": page.keys,
                "conditions": self.transfer.conditions.message(),
                "partial": page.partial,
            },
            page,
        )
        return answer.object if answer.HasField("object") else None


class Rewrap:
    """One copy or move as a state machine: ``step`` until it returns None, then ``result``."""

    def __init__(self, session: Session, verbs: TransferCalls) -> None:
        self._session = session
        self._transfer = verbs.transfer
        self._verbs = verbs
        self._page: BeginPage | None = None
        self._result: pb.Object | None = None
        self._sent = 0

    @property
    def is_finished(self) -> bool:
        """Whether the transfer is committed."""
        return self._result is not None

    @property
    def fraction(self) -> float:
        """The share of the segments whose keys were sent, from 0 to 1."""
        total = self._page.total if self._page else 0
        return min(1.0, self._sent / total) if total else float(self.is_finished)

    @property
    def operation(self) -> bytes | None:
        """The id that a resume needs; None before the first step."""
        return self._page.operation if self._page else None

    def resume(self, operation: bytes) -> None:
        """Go on with an operation that another process began; one that it finished is finished."""
        found = self._session.metainfo.get_operation(
            pb.OperationGetRequest(header=self._session.header, operation_id=operation)
        )
        if found.finished:
            # A repeated Finish gives the object that the first one committed.
            repeat = FinishPage(operation, b"", [], SealedMetadata(), partial=False)
            self._result = self._verbs.finish(repeat)
            return
        cursor = found.last_position if found.HasField("last_position") else None
        self._sent = found.keys_received
        self._page = replace(self._verbs.begin(operation, cursor), operation=operation)

    def begin(self) -> BeginPage:
        """The first page of keys; nothing is written but the operation itself."""
        if self._page is None:
            with name_missing_object(self._transfer.old):
                self._page = self._verbs.begin(b"", None)
        return self._page

    def step(self) -> int | None:
        """Send one page of keys; how many, or None once the transfer is committed."""
        if self._result is not None:
            return None
        page = self.begin()
        finish = FinishPage(
            operation=page.operation,
            stream=page.stream,
            keys=rewrap_keys(page.suite, self._transfer.old, self._transfer.new, page.keys),
            metadata=self._metadata(page),
            partial=page.more,
        )
        self._result = self._verbs.finish(finish)
        self._sent += len(page.keys)
        if page.more:
            self._page = self._verbs.begin(page.operation, page.keys[-1].position)
        return len(page.keys)

    def run(self) -> ObjectInfo:
        """Every step; the committed object."""
        while self.step() is not None:
            pass
        return self.result()

    def result(self) -> ObjectInfo:
        """The committed object; valid after ``step`` returned None."""
        if self._result is None:
            raise InvalidInput("the transfer is not finished")
        return object_info(self._result, self._transfer.new)

    def _metadata(self, page: BeginPage) -> SealedMetadata:
        transfer = self._transfer
        if page.more:
            return SealedMetadata()  # only the last page commits, and metadata goes with it
        if transfer.metadata is not None:
            return seal_metadata(page.suite, transfer.new, transfer.metadata)
        key = rewrap_metadata_key(
            page.suite, transfer.old, transfer.new, page.metadata_nonce, page.metadata_key
        )
        if key is None:
            return SealedMetadata()
        return SealedMetadata(nonce=key.nonce, wrapped_key=key.ciphertext)


def rewrap_keys(
    suite: int, old: Located, new: Located, keys: Iterable[pb.EncryptedKeyAndNonce]
) -> list[pb.EncryptedKeyAndNonce]:
    """The keys of an object's segments, wrapped for another name."""
    both = SegmentKeyRewrap(suite, old, new)
    return [_rewrap_key(both, key) for key in keys]


def _rewrap_key(both: SegmentKeyRewrap, key: pb.EncryptedKeyAndNonce) -> pb.EncryptedKeyAndNonce:
    position = key.position
    nonce, wrapped = both.rewrap(
        Sealed(key.encrypted_key_nonce, key.encrypted_key),
        Position(position.part_number, position.index),
    )
    return pb.EncryptedKeyAndNonce(
        position=position, encrypted_key_nonce=nonce, encrypted_key=wrapped
    )
