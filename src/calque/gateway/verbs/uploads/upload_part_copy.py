"""UploadPartCopy: a part that is a range of an object."""

from __future__ import annotations

import hashlib
import re

from calque.errors import ConditionNotMatch, NotFound, ResourceExhausted, Unsupported
from calque.gateway.content import CHECKSUM, ETAG
from calque.gateway.copy_source import CopySource, parse_copy_source
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.objects.copy_object import stat_source
from calque.gateway.verbs.uploads.upload import Origin, PartNote, open_upload, part_number
from calque.store.uplink.objects import ObjectInfo
from calque.store.uplink.verbs.multipart import MultipartUpload

_TRIES = 3
_RANGE = re.compile(r"bytes=(\d{1,19})-(\d{1,19})", re.ASCII)


def upload_part_copy(call: Call) -> Response:
    """Make a part of an object, or of a range of it, of the very version that was looked at.

    The part is a reference: no byte is read, whatever the range.
    """
    number = part_number(call)
    source = parse_copy_source(call.headers["x-amz-copy-source"])
    upload = open_upload(call)
    for attempt in range(1, _TRIES + 1):
        found = stat_source(call, source)
        first, length = _span(call.headers.get("x-amz-copy-source-range"), found)
        note = _note(found, first, length)
        try:
            _copy_part(call, upload, number, source, found, (first, length), str(note))
            break
        except (ConditionNotMatch, NotFound):
            # Replaced or deleted since it was looked at: look, and judge, again. What is missing
            # then is the source, and not the upload.
            if attempt == _TRIES:
                raise
    return answer("CopyPartResult", {"LastModified": found.created, "ETag": f'"{note.etag}"'})


def _copy_part(
    call: Call,
    upload: MultipartUpload,
    number: int,
    source: CopySource,
    found: ObjectInfo,
    span: tuple[int, int],
    note: str,
) -> None:
    where = (source.bucket, source.key)
    first, length = span
    try:
        upload.copy_part(
            number, *where, offset=first, length=length, if_match=found.etag, etag=note
        )
    except (Unsupported, ResourceExhausted):
        # Of another cipher, or referred to as often as may be: its bytes are stored once more.
        download = call.project.download(*where, offset=first, length=length, if_match=found.etag)
        upload.upload_part(number, download, etag=note)


def _note(source: ObjectInfo, first: int, length: int) -> PartNote:
    """The MD5 where it is known, of a whole object; else a value that says which bytes it means."""
    checksum = source.metadata.get(CHECKSUM, "")
    origin = Origin(source.etag, first, length, source.size, checksum)
    known = source.metadata.get(ETAG, "")
    if length == source.size and known and "-" not in known:
        return PartNote(known, {}, origin)
    opaque = hashlib.sha256(f"{source.etag}/{first}/{length}".encode()).hexdigest()[:32]
    return PartNote(opaque, {}, origin)


def _span(text: str | None, source: ObjectInfo) -> tuple[int, int]:
    """Offset and length; a range must lie within the source, and names both its ends."""
    if text is None:
        return 0, source.size
    found = _RANGE.fullmatch(text.strip())
    if found is None or int(found[2]) < int(found[1]):
        raise S3Error(
            "InvalidArgument",
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first "
            "and last are the zero-based offsets of the first and last bytes to copy",
        )
    first, last = int(found[1]), int(found[2])
    if last >= source.size:
        raise S3Error(
            "InvalidRange",
            f"Range specified is not valid for source object of size: {source.size}",
        )
    return first, last - first + 1
