"""Writes: one request where the bytes fit one piece, else a resumable session of pieces."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import google_crc32c

from calque.errors import CalqueError, IntegrityError, Unavailable, Unexpected
from calque.operator.http.exchange import Answer
from calque.operator.layers.chain import Call
from calque.operator.options import WriteOptions
from calque.operator.services.conditional import condition_error, new_mark, send_marked
from calque.operator.services.gcs.client import Client, document, objects_path
from calque.operator.services.gcs.errors import error_of
from calque.operator.services.gcs.marker import add_mark, find_marked
from calque.operator.services.gcs.resource import body_of, metadata_of, refuse_tags
from calque.operator.services.gcs.stat import find_generation
from calque.operator.services.pieces import mark_last, whole_or_pieces
from calque.values import MIB, Metadata

PIECE = 8 * MIB
"""What is held in memory, twice at most; a multiple of the 256 KiB that sessions count in."""
RESUME_INCOMPLETE = 308
_RECEIVED = re.compile(r"bytes=0-(\d+)")


@dataclass(slots=True)
class Upload:
    """One write. Its conditions are checked by the service at the moment of the commit."""

    client: Client
    path: str
    options: WriteOptions
    _query: dict[str, str | int | None] = field(init=False)
    _mark: str = field(default_factory=new_mark)

    def __post_init__(self) -> None:
        refuse_tags(self.options.tags)

    def send(self, chunks: Iterable[bytes]) -> Metadata:
        """Write all chunks; an error out of them passes through and nothing is left."""
        self._find_condition()
        data = whole_or_pieces(chunks, PIECE)
        return self._send_whole(data) if isinstance(data, bytes) else self._send_pieces(data)

    def _find_condition(self) -> None:
        pin = find_generation(self.client, self.path, self.options.if_match)
        self._query = {"ifGenerationMatch": "0" if self.options.if_not_exists else pin}

    @property
    def location(self) -> str:
        return self.client.location(self.path)

    @property
    def _conditional(self) -> bool:
        return self._query["ifGenerationMatch"] is not None

    def _resource(self) -> dict[str, Any]:
        described = {"contentType": "application/octet-stream", **body_of(self.options)}
        return {**described, "name": self.client.key(self.path)}

    def _url(self, kind: str) -> str:
        path = f"/upload{objects_path(self.client.bucket)}"
        return self.client.link.url(path, {"uploadType": kind, **self._query})

    def _send_whole(self, data: bytes) -> Metadata:
        """Metadata and bytes in one request, with a checksum that the service compares."""
        resource = {**self._resource(), "crc32c": base64_of(google_crc32c.value(data))}
        # Only then can a repeat be refused for what the first attempt has made.
        if self._conditional:
            resource = add_mark(resource, self._mark)
        # By chance, so that no bytes of an object can be taken for the end of a part.
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
        url = self._url("multipart")

        def request(call: Call) -> Metadata:
            answer = self.client.link.exchange(call, "POST", url, headers=headers, body=body)
            if answer.status not in (200, 201):
                raise self.error_of(answer)
            made = document(answer, self.location)
            self._refuse_other_bytes(made, resource["crc32c"])
            return metadata_of(made, self.path)

        def find_made() -> Metadata | None:
            return find_marked(self.client, self.path, self._mark)

        return send_marked(self.client.chain, "write", self.path, request, find_made)

    def error_of(self, answer: Answer) -> CalqueError:
        """The error for an answer by which the write is refused."""
        if answer.status == 412:
            return condition_error(self.location, if_not_exists=self.options.if_not_exists)
        return error_of(answer, self.location, "write")

    def _send_pieces(self, pieces: Iterator[bytes]) -> Metadata:
        # A session needs no mark: asked again, it tells itself what it has made.
        session = self._open_session()
        digest, offset = 0, 0
        try:
            for piece, last in mark_last(pieces):
                digest = google_crc32c.extend(digest, piece)
                total = offset + len(piece) if last else None
                made = Piece(self, session, offset, piece, total, base64_of(digest)).send()
                offset += len(piece)
        except BaseException as error:
            self._cancel(session, error)
            raise
        return self.read_made(made, base64_of(digest))

    def read_made(self, made: dict[str, Any] | None, digest: str) -> Metadata:
        """What the answer to the last piece says of the object; raises where it is another."""
        if made is None:
            raise Unexpected(f"GCS took all of {self.location} and did not finish it")
        self._refuse_other_bytes(made, digest)
        return metadata_of(made, self.path)

    def open_session(self) -> str:
        """A session that another process may go on with: its address, on our own server."""
        self._find_condition()
        return self._open_session()

    def _refuse_other_bytes(self, made: Mapping[str, Any], digest: str) -> None:
        """The service compares too; an emulator may not, and a wrong object must not pass."""
        if made.get("crc32c") not in (None, digest):
            raise IntegrityError(
                f"GCS holds other bytes for {self.location} than were sent",
                hint="The object is there and is wrong: write it again, or delete it.",
            )

    def _open_session(self) -> str:
        url, body = self._url("resumable"), json.dumps(self._resource()).encode()
        headers = {"Content-Type": "application/json; charset=UTF-8"}

        def request(call: Call) -> str:
            answer = self.client.link.exchange(call, "POST", url, headers=headers, body=body)
            if answer.status not in (200, 201):
                raise self.error_of(answer)
            session = urlsplit(answer.headers.get("location", ""))
            if "upload_id=" not in session.query:
                raise Unexpected(f"GCS opened no upload session for {self.location}")
            # On our own server: it may know itself by another address, and credentials go nowhere
            # else.
            return f"{session.path}?{session.query}"

        return self.client.chain.send("initiate", self.path, request)

    def ask_session(self, session: str) -> int | dict[str, Any]:
        """How many bytes a session holds, or the object that it has made; NotFound: it is gone."""

        def request(call: Call) -> Answer:
            headers = {"Content-Range": "bytes */*"}
            answer = self.client.link.exchange(call, "PUT", session, headers=headers, body=b"")
            if answer.status not in (200, 201, RESUME_INCOMPLETE):
                raise self.error_of(answer)
            return answer

        answer = self.client.chain.send("list_parts", self.path, request)
        if answer.status == RESUME_INCOMPLETE:
            return count_received(answer)
        return document(answer, self.location)

    def cancel_session(self, session: str) -> None:
        """Drop the session and what it holds; one that is gone is no error."""

        def request(call: Call) -> None:
            # 499 is the service's word for done.
            self.client.link.exchange(call, "DELETE", session)

        self.client.chain.send("abort", self.path, request)

    def _cancel(self, session: str, cause: BaseException) -> None:
        """Drop the session; a failure of that is noted on what caused it."""
        try:
            self.cancel_session(session)
        except CalqueError as error:
            cause.add_note(f"the upload session was not cancelled and ends in a week: {error}")


@dataclass(slots=True)
class Piece:
    """One piece of a session. Sent again after a failure it first asks what has arrived.

    ``held``: how many bytes of the object the session is known to hold before it is sent.
    """

    upload: Upload
    session: str
    offset: int
    data: bytes
    total: int | None
    digest: str
    held: int = 0
    attempts: int = 0

    def send(self) -> dict[str, Any] | None:
        """The finished object after the last piece, else None."""
        upload = self.upload
        last = self.total is not None
        return upload.client.chain.send("write_part", upload.path, self._attempt, slow=last)

    def _attempt(self, call: Call) -> dict[str, Any] | None:
        self.attempts += 1
        # After a failure nobody knows how much of the piece has arrived: ask before sending.
        received = max(self.offset, self.held)
        if self.attempts > 1:
            answer = self._put(call, b"", f"bytes */{self._total}")
            if answer.status in (200, 201):
                return document(answer, self.upload.location)
            received = self._count_received(answer)
        # The service may keep less than it was sent; the rest goes out again.
        while received < self.offset + len(self.data):
            answer = self._put(call, *self._rest(received))
            if answer.status in (200, 201):
                return document(answer, self.upload.location)
            before, received = received, self._count_received(answer)
            # Without progress this would go on for ever.
            if received <= before:
                raise Unavailable(f"GCS takes no more bytes of {self.upload.location}")
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
        # The digest of the whole is known with the last piece; GCS refuses to commit other bytes.
        if self.total is not None and body:
            headers["X-Goog-Hash"] = f"crc32c={self.digest}"
        answer = self.upload.client.link.exchange(
            call, "PUT", self.session, headers=headers, body=body
        )
        if answer.status not in (200, 201, RESUME_INCOMPLETE):
            raise self.upload.error_of(answer)
        return answer

    def _count_received(self, answer: Answer) -> int:
        """How many bytes of the whole object the session holds."""
        held = count_received(answer)
        if not self.offset <= held <= self.offset + len(self.data):
            raise Unexpected(
                f"GCS holds {held} bytes of {self.upload.location}, "
                f"which the piece from {self.offset} cannot go on from"
            )
        return held


def count_received(answer: Answer) -> int:
    """How many bytes a session says that it holds."""
    found = _RECEIVED.fullmatch(answer.headers.get("range", ""))
    return int(found[1]) + 1 if found else 0


def base64_of(digest: int) -> str:
    """A CRC32C as the service writes it."""
    return base64.b64encode(digest.to_bytes(4, "big")).decode()
