"""Writes: one PUT for what fits into a part, else parts sent as the chunks arrive.

Memory stays at ``concurrent + 2`` parts, whatever the size. Nothing is visible before the commit.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

from calque.errors import CalqueError, IntegrityError, InvalidInput, Unexpected, Unsupported
from calque.operator.drivers.verbs import CommitConflict, Part
from calque.operator.interruptible import result_of, wait_for_first
from calque.operator.options import WriteOptions
from calque.operator.service import WriteAgain
from calque.operator.services.s3 import marker
from calque.operator.services.s3.client import Client, Request
from calque.operator.services.s3.config import S3Config
from calque.operator.services.s3.object_headers import (
    content_headers,
    tags_document,
    tags_header,
    target_conditions,
)
from calque.operator.services.s3.replies import bare_etag, checksum_of, version_of
from calque.operator.services.s3.uploads import Uploads, misses_a_part
from calque.values import Metadata, PartPlan

_GROW_EVERY = 1000
"""Parts of an unknown size double after so many, so that 9,999 of them hold what S3 can hold."""


@dataclass(frozen=True, slots=True)
class Write:
    """One object to be written."""

    client: Client
    config: S3Config
    path: str
    key: str
    options: WriteOptions

    def run(self, chunks: Iterable[bytes]) -> Metadata:
        """Write all chunks and return what was made."""
        self.refuse_bad_metadata()
        try:
            return self._run(chunks)
        except WriteAgain:
            if not isinstance(chunks, Sequence):
                raise
        return self._run(chunks)

    def _run(self, chunks: Iterable[bytes]) -> Metadata:
        parts = self._cut(chunks)
        # Two parts tell whether one is all: a single PUT saves three requests.
        ahead = list(islice(parts, 2))
        if len(ahead) < 2:
            whole = ahead[0] if ahead else b""
            return self._describe(self._put(whole), len(whole))
        return self._in_parts(_let_go(ahead, parts))

    def refuse_bad_metadata(self) -> None:
        """Raise for metadata that no header can carry, before anything is sent."""
        content_headers(self.options)
        tags_header(self.options.tags)

    def _cut(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks in pieces of a part's size."""
        held = bytearray()
        number, size = 1, self._part_size()
        for chunk in chunks:
            held += chunk
            while len(held) > size:
                # Through a view: a slice of the bytearray would be a second copy of the part.
                with memoryview(held) as view:
                    part = bytes(view[:size])
                del held[:size]
                yield part
                number += 1
                if self.options.size_hint is None and number % _GROW_EVERY == 0:
                    size = min(size * 2, marker.LIMITS.largest)
        if held:
            yield bytes(held)

    def _part_size(self) -> int:
        hint, size = self.options.size_hint, self.config.write_part
        try:
            if hint:
                size = PartPlan.make(hint, size, marker.LIMITS).part_size
        except ValueError as error:
            raise InvalidInput(f"{self.client.location(self.key)}: {error}") from error
        return marker.odd_size(size) if self.client.link.marks_by_size else size

    def _put(self, data: bytes) -> Metadata:
        check = self.check_of(data)
        headers = {**self._headers(), **check, **self.conditions}
        request = Request("PUT", self.key, headers=headers, body=data)
        answer = self.client.send("write", self.path, request, idempotent=not self.conditions)
        # The server compares too, if it can: one that cannot may still tell what it holds.
        if any(answer.headers.get(name, value) != value for name, value in check.items()):
            raise IntegrityError(
                f"{self.client.location(self.key)}: the server holds other bytes than were sent",
                hint="The object is there and is wrong: write it again, or delete it.",
            )
        self.tag_afterwards()
        etag = bare_etag(answer.headers.get("etag"))
        if etag is None:
            raise Unexpected(f"{self.client.location(self.key)}: the reply has no ETag")
        return Metadata(
            path=self.path,
            etag=etag,
            version=version_of(answer.headers),
            checksum=checksum_of(answer.headers),
        )

    @property
    def conditions(self) -> dict[str, str]:
        """What must hold of the target, as headers."""
        return target_conditions(self.options.if_not_exists, self.options.if_match)

    def _headers(self) -> dict[str, str]:
        headers = content_headers(self.options)
        tags = tags_header(self.options.tags)
        if tags:
            headers["x-amz-tagging"] = tags
        if self.options.storage_class:
            headers["x-amz-storage-class"] = self.options.storage_class
        return headers

    def check_of(self, data: bytes) -> dict[str, str]:
        """What lets the server see that the bytes arrived whole."""
        if self.config.checksum == "crc32":
            return {"x-amz-checksum-crc32": marker.crc32(data)}
        if self.config.checksum == "md5":
            digest = hashlib.md5(data, usedforsecurity=False).digest()
            return {"content-md5": base64.b64encode(digest).decode()}
        return {}

    def tag_afterwards(self) -> None:
        """Put tags that did not fit into a header."""
        tags = self.options.tags
        if tags and tags_header(tags) is None:
            put_tags(self.client, self.path, self.key, tags)

    def _in_parts(self, pieces: Iterator[bytes]) -> Metadata:
        if not self.config.commits(self.options.if_not_exists, self.options.if_match):
            raise uncommittable(self.client.location(self.key))
        uploads = Uploads(self.client)
        headers = self.upload_headers()
        by_part = not self.client.link.marks_by_size
        upload = uploads.begin(self.path, self.key, headers)
        try:
            sent = _Sending(self, uploads, upload)
            parts = sent.all(pieces)
            made = uploads.complete(
                self.path,
                self.key,
                upload,
                parts,
                {**self.conditions, **sent.whole_check()},
                idempotent=not self.conditions,
            )
        except CommitConflict as conflict:
            error = CalqueError(
                f"{self.client.location(self.key)}: another write of the target raced with this "
                "one; its chunks are used up",
                hint="Write again.",
            )
            _drop(uploads, self, upload, error)
            raise error from conflict
        except BaseException as error:
            # Dropped whatever the error was: the parts of an unfinished upload are paid for.
            _drop(uploads, self, upload, error)
            if by_part and misses_a_part(error):
                raise self._mark_by_size() from error
            raise
        self.tag_afterwards()
        return self._describe(made, sent.size)

    def upload_headers(self) -> dict[str, str]:
        """What an upload is begun with."""
        headers = self._headers()
        if self.config.checksum == "crc32":
            headers["x-amz-checksum-algorithm"] = "CRC32"
            headers["x-amz-checksum-type"] = "FULL_OBJECT"
        return headers

    def _mark_by_size(self) -> WriteAgain:
        """The server commits no upload that holds a part more, so parts are marked otherwise."""
        self.client.link.marks_by_size = True
        return WriteAgain(
            f"{self.client.location(self.key)}: the server refuses the part by which uploads are "
            "marked",
            hint="Write again: another mark is used from now on. upload_mark=size says it at once.",
        )

    def _describe(self, made: Metadata, size: int) -> Metadata:
        options = self.options
        return replace(
            made,
            size=size,
            content_type=options.content_type,
            content_encoding=options.content_encoding,
            content_language=options.content_language,
            content_disposition=options.content_disposition,
            cache_control=options.cache_control,
            expires=options.expires,
            user=dict(options.user),
            tags=None if options.tags is None else dict(options.tags),
            storage_class=options.storage_class,
        )


class _Sending:
    """Parts on their way: at most ``concurrent`` at a time, one more being cut."""

    def __init__(self, write: Write, uploads: Uploads, upload: str) -> None:
        self._write = write
        self._uploads = uploads
        self._upload = upload
        self._crc = 0
        self.size = 0

    def all(self, pieces: Iterator[bytes]) -> list[Part]:
        """Send every part; the first failure is raised once nothing is in flight."""
        most = self._write.options.concurrent
        flying: set[Future[Part]] = set()
        done: list[Part] = []
        with ThreadPoolExecutor(most, thread_name_prefix="calque-write") as pool:
            try:
                for number, data in enumerate(pieces, 1):
                    self._count(number, data)
                    # A part is cut only when a place is free, so memory stays bounded.
                    if len(flying) >= most:
                        landed, flying = wait_for_first(flying)
                        done += [each.result() for each in landed]
                    flying.add(pool.submit(self._send, number, data))
                done += [result_of(each) for each in flying]
            finally:
                for each in flying:
                    each.cancel()
        return sorted(done, key=lambda part: part.number)

    def _count(self, number: int, data: bytes) -> None:
        if number >= marker.NUMBER:
            raise InvalidInput("the chunks are more than S3 can hold in one object")
        self.size += len(data)
        if self._write.config.checksum == "crc32":
            self._crc = zlib.crc32(data, self._crc)

    def _send(self, number: int, data: bytes) -> Part:
        write = self._write
        check = write.check_of(data)
        return self._uploads.put(write.path, write.key, self._upload, number, data, check)

    def whole_check(self) -> dict[str, str]:
        """What lets the server compare the whole object before it commits it."""
        headers = {"x-amz-mp-object-size": str(self.size)}
        if self._write.config.checksum == "crc32":
            whole = base64.b64encode(self._crc.to_bytes(4, "big")).decode()
            headers |= {"x-amz-checksum-crc32": whole, "x-amz-checksum-type": "FULL_OBJECT"}
        return headers


def uncommittable(location: str) -> Unsupported:
    """The error for a condition that the commit of an upload would not keep."""
    return Unsupported(
        f"{location}: this server does not keep the condition on the commit of an upload "
        "(see commit_conditions), and so large an object is made by one",
        hint="Leave the condition out, or make the object smaller than a part.",
    )


def _let_go(ahead: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    """What was read ahead, then the rest; nothing is held that was given out."""
    while ahead:
        yield ahead.pop(0)
    yield from rest


def _drop(uploads: Uploads, write: Write, upload: str, error: BaseException) -> None:
    """Remove the upload of a failed write, whatever the failure was, without hiding it."""
    try:
        uploads.abort(write.path, write.key, upload)
    except CalqueError as failure:
        error.add_note(f"left behind: multipart upload {upload} ({failure.message})")


def put_tags(
    client: Client, path: str, key: str, tags: Mapping[str, str], version: str | None = None
) -> None:
    """Tags that do not fit into a header are put after the object was made."""
    body = tags_document(tags)
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    query = [("tagging", "")]
    if version:
        query.append(("versionId", version))
    request = Request(
        "PUT", key, query=query, headers={"content-md5": digest}, body=body, accepts=(200, 204)
    )
    client.send("tag", path, request)
