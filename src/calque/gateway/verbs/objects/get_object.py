"""GetObject and HeadObject: the same answer, with and without the bytes."""

from __future__ import annotations

from collections.abc import Iterator

from calque.errors import ConditionNotMatch
from calque.gateway.conditions import check_read, is_range_meant
from calque.gateway.content import checksum_headers, checksum_of, object_headers
from calque.gateway.errors import S3Error
from calque.gateway.ranges import ByteRange, find_range
from calque.gateway.request import BLOCK, Response
from calque.gateway.verbs.call import Call
from calque.gateway.verbs.uploads.upload import PartNote
from calque.store.uplink.objects import ObjectInfo
from calque.store.uplink.parts import PartInfo
from calque.store.uplink.verbs.download import Download

_TRIES = 3
_OVERRIDES = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
)


def get_object(call: Call) -> Response:
    """An object or a range of it, of one version from its first byte to its last."""
    if "range" not in call.headers and "partNumber" not in call.query:
        # One call to the store; the bytes are not touched before they are asked for.
        download = call.project.download(call.bucket, call.key)
        response = describe(call, download.info)
        response.body = _read(download, download.info.size)
        return response
    for _ in range(_TRIES - 1):
        try:
            return _get_range(call, call.stat())
        except ConditionNotMatch:  # replaced between the look and the read
            continue
    return _get_range(call, call.stat())


def _get_range(call: Call, info: ObjectInfo) -> Response:
    response = describe(call, info)
    first, length = _span(response)
    download = call.project.download(
        call.bucket, call.key, offset=first, length=length, if_match=info.etag
    )
    response.body = _read(download, info.size if length is None else length)
    return response


def _span(response: Response) -> tuple[int, int | None]:
    """Offset and length of what the head promises."""
    if response.status != 206:
        return 0, None
    first = response.headers["Content-Range"].removeprefix("bytes ").partition("-")[0]
    return int(first), int(response.headers["Content-Length"])


def head_object(call: Call) -> Response:
    """What GetObject tells, without the bytes."""
    return describe(call, call.stat())


def describe(call: Call, info: ObjectInfo) -> Response:
    """Status and headers, after every condition was looked at."""
    check_read(call.headers, info)
    parts = _parts(call, info) if "partNumber" in call.query else None
    wanted = _range_of(call, info, parts)
    headers = object_headers(info)
    headers["Content-Length"] = str(wanted.length if wanted else info.size)
    if wanted:
        headers["Content-Range"] = wanted.header(info.size)
    if call.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED":
        if parts:
            headers |= _part_checksum(info, parts[call.number("partNumber", 1, 1, len(parts)) - 1])
        elif not wanted:
            headers |= checksum_headers(info)
    if parts:
        headers["x-amz-mp-parts-count"] = str(len(parts))
    for name in _OVERRIDES:
        value = call.query.get(f"response-{name}")
        if value:
            headers[name.title()] = _one_line(value)
    return Response(206 if wanted else 200, headers)


def _range_of(call: Call, info: ObjectInfo, parts: list[PartInfo] | None) -> ByteRange | None:
    if parts is None:
        is_meant = is_range_meant(call.headers, info)
        return find_range(call.headers.get("range"), info.size) if is_meant else None
    if "range" in call.headers:
        raise S3Error("InvalidRequest", "Cannot specify both Range header and partNumber.")
    number = call.number("partNumber", 1, 1, 10_001)
    sizes = [part.size for part in parts] or [info.size]
    if number > len(sizes):
        raise S3Error("InvalidPartNumber", "The requested partnumber is not satisfiable")
    if not sizes[number - 1]:
        return None
    first = sum(sizes[: number - 1])
    return ByteRange(first, first + sizes[number - 1] - 1)


def _parts(call: Call, info: ObjectInfo) -> list[PartInfo]:
    """The parts that the object came in; empty where it came in one, or nobody can tell."""
    parts = call.project.list_parts(call.bucket, call.key)
    return parts if sum(part.size for part in parts) == info.size else []


def _part_checksum(info: ObjectInfo, part: PartInfo) -> dict[str, str]:
    """The checksum that a part came with, in the algorithm of the object."""
    whole = checksum_of(info)
    value = PartNote.of(part).checksums.get(whole.algorithm) if whole else None
    if whole is None or value is None:
        return {}
    return {whole.header: value, "x-amz-checksum-type": whole.kind}


def _read(download: Download, size: int) -> bytes | Iterator[bytes]:
    """What is one block at most is read at once: what goes wrong can then still be told, and the
    answer is handed over in one piece."""
    blocks = _blocks(download)
    return b"".join(blocks) if size <= BLOCK else blocks


def _blocks(download: Download) -> Iterator[bytes]:
    """Closed by whoever sends it when the client is gone: nothing more is read from the nodes."""
    try:
        yield from download
    finally:
        download.close()


def _one_line(value: str) -> str:
    if any(ord(each) < 32 or ord(each) == 127 for each in value):
        raise S3Error("InvalidArgument", "A header cannot hold control characters.")
    return value.encode().decode("latin-1")
