"""Multipart uploads: begun with our marker, filled, listed, committed, dropped."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from xml.sax.saxutils import escape

from calque.errors import CalqueError, InvalidInput, NotFound, PermissionDenied, Unexpected
from calque.operator.drivers.verbs import CommitConflict, Part
from calque.operator.http.paging import PageGuard
from calque.operator.http.told_sizes import count_of
from calque.operator.services.s3 import marker
from calque.operator.services.s3.client import Answer, Client, Request, refusal_behind
from calque.operator.services.s3.replies import (
    bare_etag,
    blocks,
    checksum_in,
    leaves,
    moment,
    quoted_etag,
    version_of,
)
from calque.values import Metadata

_MD5 = re.compile(r"[0-9a-f]{32}")
_LIST = re.compile(rb"[<:]List[A-Z]")
_NAMES_ALL = "Where the server commits no upload that has a part more: say upload_mark=size."


@dataclass(frozen=True, slots=True)
class UnfinishedUpload:
    """An upload as a listing shows it."""

    key: str
    upload: str
    started: datetime | None


@dataclass(frozen=True, slots=True)
class Uploads:
    """The multipart uploads of one bucket."""

    client: Client

    def begin(self, path: str, key: str, headers: Mapping[str, str]) -> str:
        """Open an upload and mark it as ours; one that cannot be marked is dropped at once."""
        request = Request("POST", key, query=(("uploads", ""),), headers=headers)
        # Not repeated blindly: each repeat would leave an upload that nobody knows of.
        answer = self.client.send("initiate", path, request, idempotent=False)
        upload = leaves(answer.body).get("UploadId")
        if not upload:
            raise Unexpected(f"{self.client.location(key)}: the reply names no upload")
        if self.client.link.marks_by_size:
            return upload
        try:
            self._mark(path, key, upload, headers.get("x-amz-checksum-algorithm", ""))
        except BaseException as error:
            self._drop_quietly(path, key, upload, error)
            raise
        self.client.link.marked.add(upload)
        return upload

    def _mark(self, path: str, key: str, upload: str, algorithm: str) -> None:
        name = algorithm.lower()
        headers = {f"x-amz-checksum-{name}": marker.CHECKSUMS[name]} if name else {}
        self.put(path, key, upload, marker.NUMBER, marker.BYTES, headers, verb="mark")

    def _drop_quietly(self, path: str, key: str, upload: str, error: BaseException) -> None:
        try:
            self.abort(path, key, upload)
        except CalqueError as failure:
            error.add_note(f"left behind: multipart upload {upload} ({failure.message})")

    def put(
        self,
        path: str,
        key: str,
        upload: str,
        number: int,
        data: bytes,
        headers: Mapping[str, str],
        *,
        verb: str = "write_part",
    ) -> Part:
        """Send the bytes of a part."""
        query = (("partNumber", str(number)), ("uploadId", upload))
        request = Request("PUT", key, query=query, headers=headers, body=data)
        answer = self.client.send(verb, path, request)
        return self._part(key, number, len(data), answer.headers.get("etag"), None)

    def copy(
        self, path: str, key: str, upload: str, number: int, size: int, headers: Mapping[str, str]
    ) -> Part:
        """Copy a part from the source that the headers name."""
        query = (("partNumber", str(number)), ("uploadId", upload))
        request = Request("PUT", key, query=query, headers=headers)
        answer = self.client.send("copy_part", path, request)
        if b"<CopyPartResult" not in answer.body:
            # Some servers take the request for an empty part and say nothing of a copy.
            raise Unexpected(f"{self.client.location(key)}: the reply to a part copy is none")
        fields = leaves(answer.body)
        found = checksum_in(fields)
        return self._part(key, number, size, fields.get("ETag"), found.value if found else None)

    def _part(
        self, key: str, number: int, size: int, etag: str | None, checksum: str | None
    ) -> Part:
        bare = bare_etag(etag)
        if bare is None:
            raise Unexpected(
                f"{self.client.location(key)}: the reply for part {number} has no ETag"
            )
        return Part(number, bare, size, checksum)

    def parts(self, path: str, key: str, upload: str, *, after: int = 0) -> Iterator[Part]:
        """The parts that the server holds, the marker too; NotFound when the upload is gone."""
        while True:
            query = [("uploadId", upload)]
            if after:
                query.append(("part-number-marker", str(after)))
            answer = self.client.send("list_parts", path, Request("GET", key, query=query))
            _refuse_other(answer, self.client.location(key))
            before = after
            for block in blocks(answer.body, "Part"):
                part = self._part_of(key, leaves(block))
                after = max(after, part.number)
                yield part
            if b"<IsTruncated>true<" not in answer.body:
                return
            if after == before:
                raise Unexpected(
                    f"{self.client.location(key)}: the server lists parts that do not go on"
                )

    def _part_of(self, key: str, fields: Mapping[str, str]) -> Part:
        found = checksum_in(fields)
        try:
            number, size = count_of(fields.get("PartNumber")), count_of(fields.get("Size"))
        except ValueError as error:
            raise Unexpected(
                f"{self.client.location(key)}: the server lists a part that cannot be read"
            ) from error
        etag = bare_etag(fields.get("ETag")) or ""
        return Part(number, etag, size, found.value if found else None)

    def data_parts(self, path: str, key: str, upload: str) -> dict[int, Part]:
        """The parts that hold data."""
        held = self.parts(path, key, upload)
        return {part.number: part for part in held if part.number != marker.NUMBER}

    def complete(
        self,
        path: str,
        key: str,
        upload: str,
        parts: Sequence[Part],
        headers: Mapping[str, str],
        *,
        idempotent: bool,
    ) -> Metadata:
        """Commit the parts; CommitConflict where a race made the upload useless."""
        listed = "".join(
            f"<Part><PartNumber>{part.number}</PartNumber>"
            f"<ETag>{escape(quoted_etag(part.etag))}</ETag></Part>"
            for part in parts
        )
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        body = f'<CompleteMultipartUpload xmlns="{space}">{listed}</CompleteMultipartUpload>'
        query = (("uploadId", upload),)
        request = Request("POST", key, query=query, headers=headers, body=body.encode())
        try:
            answer = self.client.send("complete", path, request, idempotent=idempotent, slow=True)
        except CalqueError as error:
            refusal = refusal_behind(error)
            if refusal is not None and refusal.status == 409:
                raise CommitConflict(str(refusal)) from error
            if refusal is not None and refusal.code in ("InvalidPart", "InvalidPartOrder"):
                error.hint = error.hint or _NAMES_ALL
            raise
        self.client.link.marked.discard(upload)
        return self._made_by(path, key, answer)

    def learn_another_mark(self, upload: str, error: InvalidInput) -> None:
        """Raise CommitConflict where a server commits no upload that holds our mark.

        Every part goes into a new upload then, which has none: of that one alone a sweep would not
        know that it is ours. The uploads after it are marked by the size of their parts.
        """
        link = self.client.link
        # This upload may have been begun before another one has learnt it.
        if misses_a_part(error) and (upload in link.marked or not link.marks_by_size):
            link.marks_by_size = True
            raise CommitConflict(str(error)) from error

    def _made_by(self, path: str, key: str, answer: Answer) -> Metadata:
        fields = leaves(answer.body)
        etag = bare_etag(fields.get("ETag"))
        if etag is None:
            raise Unexpected(
                f"{self.client.location(key)}: the reply to the commit has no ETag",
                hint="Whether the target was made is not known: look at it before you go on.",
            )
        return Metadata(
            path=path,
            etag=etag,
            version=version_of(answer.headers),
            checksum=checksum_in(fields),
        )

    def abort(self, path: str, key: str, upload: str) -> None:
        """Drop an upload; one that is gone is no error."""
        request = Request("DELETE", key, query=(("uploadId", upload),), accepts=(200, 204))
        with suppress(NotFound):
            self.client.send("abort", path, request)
        self.client.link.marked.discard(upload)

    def list_unfinished(self, path: str, prefix: str) -> Iterator[UnfinishedUpload]:
        """The unfinished uploads under a prefix, anybody's."""
        markers: list[tuple[str, str]] = []
        turning = PageGuard(self.client.location(prefix))
        while True:
            # No encoding-type: SeaweedFS says that it encodes the keys, and does not.
            query = [("uploads", ""), ("prefix", prefix), *markers]
            try:
                answer = self.client.send("list_uploads", path, Request("GET", None, query=query))
            except NotFound as error:
                refusal = refusal_behind(error)
                if refusal is not None and refusal.code == "NoSuchUpload":
                    return  # rclone's word for none at all
                raise
            _refuse_other(answer, self.client.location(prefix))
            head = leaves(answer.body)
            for block in blocks(answer.body, "Upload"):
                fields = leaves(block)
                started = moment(fields.get("Initiated"))
                yield UnfinishedUpload(fields.get("Key", ""), fields.get("UploadId", ""), started)
            if head.get("IsTruncated") != "true":
                return
            markers = [
                ("key-marker", head.get("NextKeyMarker", "")),
                ("upload-id-marker", head.get("NextUploadIdMarker", "")),
            ]
            turning.check(tuple(markers), ())

    def is_marked(self, path: str, begun: UnfinishedUpload) -> bool | None:
        """Whether an upload carries our marker; None when it holds no part at all."""
        try:
            last = list(self.parts(path, begun.key, begun.upload, after=marker.NUMBER - 1))
        except (NotFound, PermissionDenied):
            raise
        except CalqueError:
            last = []  # rclone hangs up when it is asked to begin behind the last part
        if any(marker.is_marker(part) for part in last):
            return True
        # Not every server understands where to begin: ask for the first page too.
        held = list(self.parts(path, begun.key, begun.upload))
        if not held:
            return None
        return any(marker.is_marker(part) for part in held) or marker.are_odd(held)


def misses_a_part(error: BaseException) -> bool:
    """Whether a commit was refused for the parts that it names, or does not name."""
    refusal = refusal_behind(error) if isinstance(error, InvalidInput) else None
    return refusal is not None and refusal.code in ("InvalidPart", "InvalidPartOrder")


def _refuse_other(answer: Answer, location: str) -> None:
    """A page of another kind, which some proxies send with 200, is no empty list.

    Servers name the root in several ways: ``ListPartsResult``, moto ``ListPartsOutput``.
    """
    if not _LIST.search(answer.body):
        raise Unexpected(f"{location}: the server lists uploads or parts in no way we know")


def multipart_etag(size: int, parts: Sequence[Part]) -> str | None:
    """The ETag of an object made of these parts; None where they are not all, or are no MD5s."""
    digests = [part.etag.partition("-")[0] for part in sorted(parts, key=lambda part: part.number)]
    if sum(part.size for part in parts) != size:
        return None
    if not all(_MD5.fullmatch(digest) for digest in digests):
        return None
    joined = b"".join(bytes.fromhex(digest) for digest in digests)
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(digests)}"
