"""GetObjectAttributes."""

from __future__ import annotations

from typing import Any

from calque.gateway.content import checksum_of, etag_of, http_time
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.uploads.upload import PartNote
from calque.store.uplink.objects import ObjectInfo
from calque.store.uplink.parts import PartInfo

ATTRIBUTES = ("ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize")
MOST = 1000


def get_object_attributes(call: Call) -> Response:
    """What was asked for of an object, and nothing else."""
    asked = [each.strip() for each in call.headers.get("x-amz-object-attributes", "").split(",")]
    if not any(asked) or any(each not in ATTRIBUTES for each in asked):
        raise S3Error("InvalidArgument", "Invalid attribute name specified.")
    info = call.stat()
    checksum = checksum_of(info)
    content: dict[str, Any] = {
        "ETag": etag_of(info).strip('"'),
        "Checksum": {
            f"Checksum{checksum.algorithm}": checksum.value,
            "ChecksumType": checksum.kind,
        }
        if checksum
        else None,
        "ObjectParts": _parts(call, info) if "ObjectParts" in asked else None,
        "StorageClass": "STANDARD",
        "ObjectSize": info.size,
    }
    shown = {name: value for name, value in content.items() if name in asked}
    response = answer("GetObjectAttributesResponse", shown)
    response.headers["Last-Modified"] = http_time(info)
    return response


def _parts(call: Call, info: ObjectInfo) -> dict[str, Any] | None:
    if not info.metadata.get("calque:etag", "").count("-"):
        return None
    parts = call.project.list_parts(call.bucket, call.key)
    if not parts:
        return None
    # These two come as headers, unlike anywhere else in S3.
    most = _header_number(call, "x-amz-max-parts", MOST)
    after = _header_number(call, "x-amz-part-number-marker", 0)
    found = [(number, part) for number, part in enumerate(parts, 1) if number > after]
    page = found[:most]
    return {
        "PartsCount": len(parts),
        "PartNumberMarker": after,
        "NextPartNumberMarker": page[-1][0] if page else after,
        "MaxParts": most,
        "IsTruncated": len(found) > len(page),
        "Part": [_describe(number, part) for number, part in page],
    }


def _describe(number: int, part: PartInfo) -> dict[str, Any]:
    checksums = PartNote.of(part).checksums
    return {
        "PartNumber": number,
        "Size": part.size,
        **{f"Checksum{name}": value for name, value in checksums.items()},
    }


def _header_number(call: Call, name: str, default: int) -> int:
    text = call.headers.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise S3Error("InvalidArgument", f"{name} is not a number.")
    return min(int(text), MOST) if name == "x-amz-max-parts" else int(text)
