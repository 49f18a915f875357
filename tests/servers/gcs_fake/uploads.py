"""Uploads: media and multipart in one request, resumable in several."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

from tests.servers.gcs_fake import conditions
from tests.servers.gcs_fake.model import Stored, World, check_name, crc32c_of, md5_of
from tests.servers.gcs_fake.replies import ApiError, Reply, Request, invalid

QUANTUM = 256 * 1024
WEEK = 7 * 24 * 3600
CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|(\*))/(\d+|\*)")


@dataclass(slots=True)
class Session:
    """One resumable upload: what has been persisted, and what it will become."""

    bucket: str
    name: str
    query: dict[str, str]
    body: dict[str, Any]
    born: float
    promised: int | None
    data: bytearray = field(default_factory=bytearray)
    done: Stored | None = None


@dataclass(slots=True)
class Uploads:
    world: World
    sessions: dict[str, Session] = field(default_factory=dict)

    def insert(self, request: Request, bucket: str) -> Reply:
        """Start or finish an upload, by ``uploadType``."""
        kind = request.query.get("uploadType")
        if kind == "media":
            content_type = request.headers.get("content-type")
            body = {"contentType": content_type} if content_type else {}
            return self._store(bucket, request.query, body, request.body)
        if kind == "multipart":
            body, data = _related(request)
            return self._store(bucket, request.query, body, data)
        if kind == "resumable":
            return self._open(request, bucket)
        raise invalid("Invalid upload type", "uploadType")

    def _store(
        self, bucket: str, query: dict[str, str], body: dict[str, Any], data: bytes
    ) -> Reply:
        made = self._commit(bucket, query, body, data)
        return Reply.of_json(200, made.resource(self.world.base))

    def _commit(
        self, bucket_name: str, query: dict[str, str], body: dict[str, Any], data: bytes
    ) -> Stored:
        bucket, name = self.world.bucket(bucket_name), _name_of(query, body)
        _check_digest(body, "crc32c", crc32c_of(data))
        _check_digest(body, "md5Hash", md5_of(data))
        conditions.check(query, bucket.find(name, None))
        return self.world.store(bucket, name, data, body)

    def _open(self, request: Request, bucket: str) -> Reply:
        body = request.json()
        name = _name_of(request.query, body)
        conditions.check(request.query, self.world.bucket(bucket).find(name, None))
        if "contentType" not in body and "x-upload-content-type" in request.headers:
            body["contentType"] = request.headers["x-upload-content-type"]
        length = request.headers.get("x-upload-content-length")
        upload = secrets.token_urlsafe(32)
        self.sessions[upload] = Session(
            bucket,
            name,
            dict(request.query),
            body,
            self.world.now(),
            int(length) if length else None,
        )
        location = (
            f"{self.world.base}/upload/storage/v1/b/{bucket}/o"
            f"?uploadType=resumable&upload_id={upload}"
        )
        headers = {"Location": location, "X-GUploader-UploadID": upload}
        return Reply(200, b"", headers)

    def put(self, request: Request) -> Reply:
        """A chunk, or with ``bytes */n`` a question how far the session is."""
        session = self._session(request)
        if session.done is not None:
            return Reply.of_json(200, session.done.resource(self.world.base))
        span = request.headers.get("content-range")
        if span is None:
            return self._receive(session, request, 0, None, len(request.body))
        parsed = CONTENT_RANGE.fullmatch(span)
        if parsed is None:
            raise invalid(f"Failed to parse Content-Range header: {span}", "Content-Range")
        total = None if parsed[4] == "*" else int(parsed[4])
        if parsed[3]:
            return self._status(session, total)
        first, last = int(parsed[1]), int(parsed[2])
        return self._receive(session, request, first, last, total)

    def _receive(
        self, session: Session, request: Request, first: int, last: int | None, total: int | None
    ) -> Reply:
        body = request.body
        if not request.complete:
            body = body[: len(body) // QUANTUM * QUANTUM]
        elif last is not None and last - first + 1 != len(body):
            raise invalid("Content-Range does not match the body's length", "Content-Range")
        if first > len(session.data):
            raise invalid(
                f"Invalid request. {first} is past the {len(session.data)} bytes received."
            )
        final = total is not None and first + len(body) == total
        if not final and request.complete and len(body) % QUANTUM:
            raise invalid(
                "Invalid request. There were "
                f"{len(body)} byte(s) in the request body, which is not a multiple of 262144."
            )
        claimed = request.headers.get("x-goog-hash", "").partition("crc32c=")[2]
        if final and claimed:
            session.body["crc32c"] = claimed.split(",")[0]
        session.data[first:] = body
        return self._status(session, total)

    def _status(self, session: Session, total: int | None) -> Reply:
        if total is None or len(session.data) < total:
            headers = {"Range": f"bytes=0-{len(session.data) - 1}"} if session.data else {}
            return Reply(308, b"", headers)
        if session.promised is not None and total != session.promised:
            raise invalid("The upload's length is not the one that was promised")
        session.done = self._commit(
            session.bucket,
            session.query,
            {**session.body, "name": session.name},
            bytes(session.data),
        )
        return Reply.of_json(200, session.done.resource(self.world.base))

    def cancel(self, request: Request) -> Reply:
        self._session(request)
        del self.sessions[request.query["upload_id"]]
        return Reply(499)

    def _session(self, request: Request) -> Session:
        upload = request.query.get("upload_id", "")
        session = self.sessions.get(upload)
        if session is None:
            raise ApiError(404, "notFound", "Invalid upload_id")
        if self.world.now() - session.born > WEEK:
            raise ApiError(410, "gone", "The upload session has expired.")
        return session


def _name_of(query: dict[str, str], body: dict[str, Any]) -> str:
    name = query.get("name") or body.get("name")
    if not name:
        raise ApiError(400, "required", "Required", "name")
    check_name(str(name))
    return str(name)


def _check_digest(body: dict[str, Any], field_name: str, actual: str) -> None:
    claimed = body.get(field_name)
    if claimed is not None and claimed != actual:
        word = "MD5" if field_name == "md5Hash" else "CRC32C"
        raise invalid(
            f'Provided {word} hash "{claimed}" doesn\'t match calculated {word} hash "{actual}".'
        )


def _related(request: Request) -> tuple[dict[str, Any], bytes]:
    """The JSON part and the media part of a multipart/related body."""
    header = Message()
    header["Content-Type"] = request.headers.get("content-type", "")
    boundary = header.get_param("boundary")
    if not isinstance(boundary, str):
        raise invalid("Missing boundary in multipart upload")
    pieces = request.body.split(b"--" + boundary.encode())
    if len(pieces) != 4:
        raise invalid("Multipart upload must have exactly two parts")
    (_, first), (kind, media) = _piece(pieces[1]), _piece(pieces[2])
    try:
        body = json.loads(first or b"{}")
    except ValueError as error:
        raise ApiError(400, "parseError", "Parse Error") from error
    if kind and "contentType" not in body:
        body["contentType"] = kind
    return body, media


def _piece(raw: bytes) -> tuple[str, bytes]:
    head, _, content = raw.lstrip(b"\r\n").partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    kinds = [line.partition(":")[2] for line in lines if line.lower().startswith("content-type")]
    return (kinds[0].strip() if kinds else ""), content.removesuffix(b"\r\n")
