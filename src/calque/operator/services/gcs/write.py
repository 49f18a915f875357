"""Writes: one request where the bytes fit one piece, else a resumable session of pieces."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import google_crc32c

from calque.errors import CalqueError, ConditionNotMatch, IntegrityError, Unavailable, Unexpected
from calque.operator.chunks import regroup
from calque.operator.http.exchange import Answer
from calque.operator.layers.chain import Call
from calque.operator.options import WriteOptions
from calque.operator.services.gcs import marker
from calque.operator.services.gcs.client import document
from calque.operator.services.gcs.errors import not_met, refusal
from calque.operator.services.gcs.requests import Requests
from calque.operator.services.gcs.resource import body_of, metadata_of, refuse_tags
from calque.values import MIB, Metadata

PIECE = 8 * MIB
"""What is held in memory, twice at most; a multiple of the 256 KiB that sessions count in."""
RESUME_INCOMPLETE = 308
_RECEIVED = re.compile(r"bytes=0-(\d+)")


@dataclass(slots=True)
class Upload:
    """One write. Its conditions are checked by the service at the moment of the commit."""

    requests: Requests
    path: str
    options: WriteOptions
    _query: dict[str, str | int | None] = field(init=False)
    _mark: str = field(default_factory=marker.fresh)

    def __post_init__(self) -> None:
        refuse_tags(self.options.tags)

    def send(self, chunks: Iterable[bytes]) -> Metadata:
        """Write all chunks; an error out of them passes through and nothing is left."""
        pin = self.requests.generation_of(self.path, self.options.if_match)
        self._query = {"ifGenerationMatch": "0" if self.options.if_not_exists else pin}
        pieces = regroup(chunks, PIECE)
        first = next(pieces, b"")
        second = next(pieces, None) if len(first) == PIECE else None
        if second is None:
            return self._whole(first)
        return self._session(_joined(first, second, pieces))

    @property
    def _location(self) -> str:
        return self.requests.location(self.path)

    @property
    def _conditional(self) -> bool:
        return self._query["ifGenerationMatch"] is not None

    def _resource(self) -> dict[str, Any]:
        described = {"contentType": "application/octet-stream", **body_of(self.options)}
        return {**described, "name": self.requests.key(self.path)}

    def _url(self, kind: str) -> str:
        bucket = quote(self.requests.bucket, safe="")
        path = f"/upload/storage/v1/b/{bucket}/o"
        return self.requests.client.url(path, {"uploadType": kind, **self._query})

    def _whole(self, data: bytes) -> Metadata:
        """Metadata and bytes in one request, with a checksum that the service compares."""
        resource = {**self._resource(), "crc32c": _base64(google_crc32c.value(data))}
        if self._conditional:
            resource = marker.marked(resource, self._mark)
        boundary = f"calque-{secrets.token_hex(16)}"
        body = b"".join(
            (
                f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode(),
                json.dumps(resource).encode(),
                f"\r\n--{boundary}\r\nContent-Type: {resource['contentType']}\r\n\r\n".encode(),
                data,
                f"\r\n--{boundary}--\r\n".encode(),
            )
        )
        headers = {"Content-Type": f"multipart/related; boundary={boundary}"}
        url, attempts = self._url("multipart"), 0

        def request(call: Call) -> Metadata:
            nonlocal attempts
            attempts += 1
            client = self.requests.client
            answer = client.exchange(call, "POST", url, headers=headers, body=body)
            return metadata_of(self.accepted(answer), self.path)

        try:
            return self.requests.chain.send("write", self.path, request)
        except ConditionNotMatch:
            # The answer of an earlier attempt may have been lost after it had made the object.
            made = marker.made_by(self.requests, self.path, self._mark) if attempts > 1 else None
            if made is None:
                raise
            return made

    def accepted(self, answer: Answer) -> dict[str, Any]:
        """The resource of the object that was made; raises where the write was refused."""
        if answer.status not in (200, 201):
            raise self.refused(answer)
        return document(answer, self._location)

    def refused(self, answer: Answer) -> CalqueError:
        if answer.status == 412:
            return not_met(self._location, if_not_exists=self.options.if_not_exists)
        return refusal(answer, self._location, "write")

    def _session(self, pieces: Iterator[tuple[bytes, bool]]) -> Metadata:
        session = self._open()
        digest, offset = 0, 0
        try:
            for piece, last in pieces:
                digest = google_crc32c.extend(digest, piece)
                total = offset + len(piece) if last else None
                made = _Piece(self, session, offset, piece, total, _base64(digest)).send()
                offset += len(piece)
        except BaseException as error:
            self._cancel(session, error)
            raise
        if made is None:
            raise Unexpected(f"GCS took all of {self._location} and did not finish it")
        if made.get("crc32c") not in (None, _base64(digest)):
            raise IntegrityError(f"GCS holds other bytes for {self._location} than were sent")
        return metadata_of(made, self.path)

    def _open(self) -> str:
        url, body = self._url("resumable"), json.dumps(self._resource()).encode()
        headers = {"Content-Type": "application/json; charset=UTF-8"}

        def request(call: Call) -> str:
            client = self.requests.client
            answer = client.exchange(call, "POST", url, headers=headers, body=body)
            if answer.status not in (200, 201):
                raise self.refused(answer)
            session = urlsplit(answer.headers.get("location", ""))
            if "upload_id=" not in session.query:
                raise Unexpected(f"GCS opened no upload session for {self._location}")
            # On our own server: it may know itself by another address, and credentials go nowhere
            # else.
            return f"{session.path}?{session.query}"

        return self.requests.chain.send("initiate", self.path, request)

    def _cancel(self, session: str, cause: BaseException) -> None:
        """Drop the session; a failure of that is noted on what caused it."""

        def request(call: Call) -> None:
            # 499 is the service's word for done.
            self.requests.client.exchange(call, "DELETE", session)

        try:
            self.requests.chain.send("abort", self.path, request)
        except CalqueError as error:
            cause.add_note(f"the upload session was not cancelled and ends in a week: {error}")


@dataclass(slots=True)
class _Piece:
    """One piece of a session. Sent again after a failure it first asks what has arrived."""

    upload: Upload
    session: str
    offset: int
    data: bytes
    total: int | None
    digest: str
    attempts: int = 0

    def send(self) -> dict[str, Any] | None:
        """The finished object after the last piece, else None."""
        upload = self.upload
        last = self.total is not None
        return upload.requests.chain.send("write_part", upload.path, self._attempt, slow=last)

    def _attempt(self, call: Call) -> dict[str, Any] | None:
        self.attempts += 1
        received = self.offset
        if self.attempts > 1:
            answer = self._put(call, b"", f"bytes */{self._total}")
            if answer.status in (200, 201):
                return document(answer, self.upload._location)
            received = self._received(answer)
        while received < self.offset + len(self.data):
            answer = self._put(call, *self._rest(received))
            if answer.status in (200, 201):
                return document(answer, self.upload._location)
            before, received = received, self._received(answer)
            if received <= before:
                raise Unavailable(f"GCS takes no more bytes of {self.upload._location}")
        return None

    @property
    def _total(self) -> str:
        return "*" if self.total is None else str(self.total)

    def _rest(self, received: int) -> tuple[bytes, str]:
        end = self.offset + len(self.data) - 1
        rest = self.data[received - self.offset :] if received > self.offset else self.data
        return rest, f"bytes {received}-{end}/{self._total}"

    def _put(self, call: Call, body: bytes, span: str) -> Answer:
        headers = {"Content-Range": span}
        if self.total is not None and body:
            headers["X-Goog-Hash"] = f"crc32c={self.digest}"
        client = self.upload.requests.client
        answer = client.exchange(call, "PUT", self.session, headers=headers, body=body)
        if answer.status not in (200, 201, RESUME_INCOMPLETE):
            raise self.upload.refused(answer)
        return answer

    def _received(self, answer: Answer) -> int:
        """How many bytes of the whole object the session holds."""
        found = _RECEIVED.fullmatch(answer.headers.get("range", ""))
        held = int(found[1]) + 1 if found else 0
        if not self.offset <= held <= self.offset + len(self.data):
            raise Unexpected(
                f"GCS holds {held} bytes of {self.upload._location}, "
                f"which the piece from {self.offset} cannot go on from"
            )
        return held


def _joined(first: bytes, second: bytes, rest: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Every piece, and whether it is the last."""
    yield first, False
    held = second
    for piece in rest:
        yield held, False
        held = piece
    yield held, True


def _base64(digest: int) -> str:
    return base64.b64encode(digest.to_bytes(4, "big")).decode()
