"""CompleteMultipartUpload."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from calque.errors import NotFound
from calque.gateway.body import checksums
from calque.gateway.body.checksums import FULL_OBJECT, Checksum
from calque.gateway.conditions import WriteCondition, condition_of_write
from calque.gateway.content import CHECKSUM, ETAG, UPLOAD, checksum_fields, checksum_of, etag_of
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.uploads.upload import (
    ALGORITHM,
    KIND,
    MOST_PARTS,
    PartNote,
    find_whole_source,
    no_such_upload,
    open_upload,
)
from calque.gateway.xml import malformed
from calque.store.uplink.objects import ObjectInfo
from calque.store.uplink.parts import PartInfo

SMALLEST_PART = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class WantedPart:
    """A part as the request lists it."""

    number: int
    etag: str
    checksums: Mapping[str, str]


def complete_multipart_upload(call: Call) -> Response:
    """Make the listed parts the object; the others are dropped in the same transaction.

    A repeat after success, of the same parts, gives the same answer while the object is there.
    """
    wanted = _read_wanted(call)
    try:
        upload = open_upload(call)
        parts = _choose(wanted, upload.parts())
        stored = _complete_map(call, upload.metadata, parts)
        condition = _read_condition(call)
        info = upload.commit(
            parts=parts,
            metadata=stored,
            if_not_exists=condition.if_not_exists,
            if_match=condition.if_match,
        )
        if info.metadata.get(ETAG) != stored[ETAG]:  # who came first has it, of other parts
            raise no_such_upload()
    except (NotFound, S3Error) as error:
        if isinstance(error, S3Error) and error.code != "NoSuchUpload":
            raise
        info = _completed_before(call, wanted, error)
    return answer(
        "CompleteMultipartUploadResult",
        {
            "Location": f"http://{call.headers.get('host', '')}{call.request.path}",
            "Bucket": call.bucket,
            "Key": call.key,
            "ETag": etag_of(info),
            **checksum_fields(checksum_of(info)),
        },
    )


def _read_condition(call: Call) -> WriteCondition:
    """What the object must be that is replaced; where there is none, it is not the upload that is
    missing."""
    try:
        return condition_of_write(call.headers, call.stat)
    except NotFound as error:
        raise S3Error("NoSuchKey", "The specified key does not exist.") from error


def _read_wanted(call: Call) -> list[WantedPart]:
    document = call.document("CompleteMultipartUpload")
    parts = []
    for each in document.children("Part"):
        number = each.require("PartNumber")
        if not (number.isascii() and number.isdigit() and len(number) <= 9):
            raise malformed("A part has no number.")
        given = {name: each.get(f"Checksum{name}") for name in checksums.WIDTHS}
        found = {name: value for name, value in given.items() if value is not None}
        parts.append(WantedPart(int(number), each.require("ETag").strip('"'), found))
    if not parts or len(parts) > MOST_PARTS:
        raise malformed("Between 1 and 10,000 parts make an object.")
    return parts


def _choose(wanted: list[WantedPart], there: list[PartInfo]) -> list[PartInfo]:
    """The listed parts as the store has them; each must be there, unchanged, and large enough."""
    numbers = [each.number for each in wanted]
    if numbers != sorted(set(numbers)):
        raise S3Error(
            "InvalidPartOrder",
            "The list of parts was not in ascending order. The parts list must be specified in "
            "order by part number.",
        )
    known = {part.number: part for part in there}
    chosen = []
    for each in wanted:
        part = known.get(each.number)
        if part is None or not _is_same(each, PartNote.of(part)):
            raise S3Error(
                "InvalidPart",
                "One or more of the specified parts could not be found. The part may not have "
                "been uploaded, or the specified entity tag may not match the part's entity tag.",
                fields={"PartNumber": str(each.number)},
            )
        chosen.append(part)
    for part in chosen[:-1]:
        if part.size < SMALLEST_PART:
            raise S3Error(
                "EntityTooSmall",
                "Your proposed upload is smaller than the minimum allowed size",
                fields={
                    "PartNumber": str(part.number),
                    "ProposedSize": str(part.size),
                    "MinSizeAllowed": str(SMALLEST_PART),
                },
            )
    return chosen


def _is_same(wanted: WantedPart, note: PartNote) -> bool:
    known = note.checksums
    same = all(known.get(name, value) == value for name, value in wanted.checksums.items())
    return wanted.etag == note.etag and same


def _complete_map(call: Call, begun: Mapping[str, str], parts: list[PartInfo]) -> dict[str, str]:
    """What is kept with the object: what Create was told, and what its bytes are known by."""
    stored = {name: value for name, value in begun.items() if name not in (ALGORITHM, KIND)}
    size = call.headers.get("x-amz-mp-object-size")
    if size is not None and size != str(sum(part.size for part in parts)):
        raise S3Error("InvalidRequest", "The x-amz-mp-object-size is not the size of the parts.")
    checksum = _combine(begun, parts)
    # A composite one may come with the number of parts behind it, or without.
    given = {
        name: value.partition("-")[0] if name.startswith(checksums.PREFIX) else value
        for name, value in call.headers.items()
        if name != "x-amz-checksum-type"
    }
    for algorithm, value in checksums.find_given(given).items():
        found = checksum or _whole_crc(algorithm, parts)
        if found is None or found.algorithm != algorithm:
            raise S3Error("InvalidRequest", "The upload has no checksum of this algorithm.")
        if found.value.partition("-")[0] != value:
            raise S3Error("BadDigest", f"The {algorithm} you specified did not match.")
        checksum = found
    if checksum is not None:
        stored[CHECKSUM] = str(checksum)
    etag = _etag([PartNote.of(part).etag for part in parts])
    return stored | {ETAG: etag, UPLOAD: _fingerprint(call)}


def _combine(begun: Mapping[str, str], parts: list[PartInfo]) -> Checksum | None:
    algorithm = begun.get(ALGORITHM)
    if algorithm is None:
        return None
    notes = [(PartNote.of(part).checksums.get(algorithm), part.size) for part in parts]
    values = [(value, size) for value, size in notes if value is not None]
    if len(values) != len(parts):  # a part that was copied has none: nobody read it
        return _carried(parts)
    return checksums.combine(algorithm, begun.get(KIND, FULL_OBJECT), values)


def _carried(parts: list[PartInfo]) -> Checksum | None:
    """The checksum of the object that the parts are a copy of."""
    source = find_whole_source(parts)
    found = Checksum.parse(source.checksum) if source else None
    return found if found and found.kind == FULL_OBJECT else None


def _whole_crc(algorithm: str, parts: list[PartInfo]) -> Checksum | None:
    if not algorithm.startswith("CRC"):
        return _carried(parts)
    return _combine({ALGORITHM: algorithm, KIND: FULL_OBJECT}, parts)


def _etag(etags: list[str]) -> str:
    """The MD5 of the parts' MD5s; of one that has none (a part copy) its etag counts as it is."""
    running = hashlib.md5(usedforsecurity=False)
    for etag in etags:
        try:
            running.update(bytes.fromhex(etag))
        except ValueError:
            running.update(etag.encode())
    return f"{running.hexdigest()}-{len(etags)}"


def _fingerprint(call: Call) -> str:
    return hashlib.sha256(call.query["uploadId"].encode()).hexdigest()[:32]


def _completed_before(call: Call, wanted: list[WantedPart], error: Exception) -> ObjectInfo:
    """The object that an earlier Complete of this upload made of these parts; else the upload is
    unknown: whoever meant other parts has not got them."""
    try:
        info = call.stat()
    except NotFound:
        raise error from None
    known = (info.metadata.get(UPLOAD), info.metadata.get(ETAG))
    if known != (_fingerprint(call), _etag([each.etag for each in wanted])):
        raise error
    return info
