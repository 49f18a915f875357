"""Uploads in parts, as all of their verbs see them: ids, what Create was told, notes of parts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calque.errors import InvalidInput, NotFound
from calque.gateway.body.body import Body
from calque.gateway.errors import S3Error
from calque.gateway.verbs.call import Call
from calque.store.service.metadata import OWN
from calque.store.uplink.parts import PartInfo
from calque.store.uplink.verbs.multipart import MultipartUpload

ALGORITHM, KIND = OWN + "upload_algorithm", OWN + "upload_checksum_type"
"""What Create was told of checksums, kept with the pending upload."""

MOST_PARTS = 10_000
_FROM = "from"


@dataclass(frozen=True, slots=True)
class Origin:
    """Of which contents a copied part is which range, and the checksum of all of them."""

    stream: str
    offset: int
    length: int
    size: int
    checksum: str = ""

    def __str__(self) -> str:
        return f"{self.stream}/{self.offset}/{self.length}/{self.size}/{self.checksum}"

    @classmethod
    def parse(cls, text: str) -> Origin:
        stream, offset, length, size, checksum = text.split("/", 4)
        return cls(stream, int(offset), int(length), int(size), checksum)


@dataclass(frozen=True, slots=True)
class PartNote:
    """What is kept with a part: its ETag, the checksums it came with, where it was copied from."""

    etag: str
    checksums: Mapping[str, str]
    origin: Origin | None = None

    def __str__(self) -> str:
        given = [f"{name}:{value}" for name, value in self.checksums.items()]
        origin = [f"{_FROM}:{self.origin}"] if self.origin else []
        return ";".join([self.etag, *given, *origin])

    @classmethod
    def of(cls, part: PartInfo) -> PartNote:
        etag, *given = part.etag.split(";")
        pairs = [each.partition(":") for each in given]
        named = {name: value for name, _, value in pairs}
        origin = named.pop(_FROM, None)
        return cls(etag, named, Origin.parse(origin) if origin else None)

    @classmethod
    def of_body(cls, body: Body) -> PartNote:
        return cls(body.md5, body.checksums)


def find_whole_source(parts: Sequence[PartInfo]) -> Origin | None:
    """The contents that copied parts join to, if they are all of them, in order."""
    origins = [PartNote.of(part).origin for part in parts]
    first, at = origins[0], 0
    for each in origins:
        if first is None or each is None or each.stream != first.stream or each.offset != at:
            return None
        at += each.length
    return first if first is not None and at == first.size else None


def encode_id(upload_id: bytes) -> str:
    """The id of an upload as clients carry it."""
    return base64.urlsafe_b64encode(upload_id).decode().rstrip("=")


def open_upload(call: Call) -> MultipartUpload:
    """The upload that the request names; NoSuchUpload when there is none."""
    text = call.query.get("uploadId", "")
    try:
        padded = text + "=" * (-len(text) % 4)
        upload_id = base64.b64decode(padded, altchars=b"-_", validate=True)
        return call.project.resume_multipart(call.bucket, call.key, upload_id)
    except (binascii.Error, ValueError, InvalidInput, NotFound) as error:
        call.project.stat_bucket(call.bucket)
        raise no_such_upload() from error


def no_such_upload() -> S3Error:
    return S3Error(
        "NoSuchUpload",
        "The specified upload does not exist. The upload ID may be invalid, or the upload may have "
        "been aborted or completed.",
    )


def part_number(call: Call) -> int:
    """The number of the part; InvalidArgument outside 1 to 10,000."""
    text = call.query.get("partNumber", "")
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= MOST_PARTS):
        raise S3Error(
            "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive"
        )
    return int(text)
