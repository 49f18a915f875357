"""ListMultipartUploads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from calque.gateway.request import Response
from calque.gateway.verbs.buckets.listing import Asked
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.owner import owner_of
from calque.gateway.verbs.uploads.upload import encode_id
from calque.store.uplink.verbs.multipart import PendingInfo

MOST = 1000


def list_multipart_uploads(call: Call) -> Response:
    """Uploads under way, by key and then by the time they began, a page at a time."""
    asked = Asked.of(call)
    most = call.number("max-uploads", MOST, 0, MOST)
    marker, id_marker = call.query.get("key-marker", ""), call.query.get("upload-id-marker", "")
    page: list[PendingInfo | str] = []
    more = False
    for entry in _fold(_pending(call, asked), asked, marker, id_marker):
        if len(page) == most:
            more = True
            break
        page.append(entry)
    last = page[-1] if page else None
    owner = owner_of(call)
    return answer(
        "ListMultipartUploadsResult",
        {
            "Bucket": call.bucket,
            "KeyMarker": asked.show(marker),
            "UploadIdMarker": id_marker,
            "NextKeyMarker": asked.show(_key_of(last)) if more and last else None,
            "NextUploadIdMarker": _id_of(last) if more and last else None,
            "Prefix": asked.show(asked.prefix),
            "Delimiter": asked.show(asked.delimiter) or None,
            "EncodingType": "url" if asked.is_encoded else None,
            "MaxUploads": most,
            "IsTruncated": more,
            "Upload": [_describe(each, asked, owner) for each in page if not isinstance(each, str)],
            "CommonPrefixes": [
                {"Prefix": asked.show(each)} for each in page if isinstance(each, str)
            ],
        },
    )


def _pending(call: Call, asked: Asked) -> list[PendingInfo]:
    call.project.stat_bucket(call.bucket)
    parent = asked.prefix[: asked.prefix.rfind("/") + 1]
    found = call.project.list_pending(call.bucket, parent)
    wanted = [each for each in found if each.key.startswith(asked.prefix)]
    return sorted(wanted, key=lambda each: (each.key.encode(), each.begun, each.upload_id))


def _fold(
    uploads: Iterable[PendingInfo], asked: Asked, marker: str, id_marker: str
) -> Iterator[PendingInfo | str]:
    common = ""
    is_past = not id_marker
    for each in uploads:
        if each.key.encode() < marker.encode() or (each.key == marker and not id_marker and marker):
            continue
        if each.key == marker and id_marker and not is_past:
            is_past = encode_id(each.upload_id) == id_marker
            continue
        at = each.key.find(asked.delimiter, len(asked.prefix)) if asked.delimiter else -1
        if at < 0:
            yield each
            continue
        found = each.key[: at + len(asked.delimiter)]
        if found not in (common, marker):
            yield found
        common = found


def _describe(info: PendingInfo, asked: Asked, owner: dict[str, str]) -> dict[str, Any]:
    return {
        "Key": asked.show(info.key),
        "UploadId": encode_id(info.upload_id),
        "Initiator": owner,
        "Owner": owner,
        "StorageClass": "STANDARD",
        "Initiated": info.begun,
    }


def _key_of(entry: PendingInfo | str) -> str:
    return entry if isinstance(entry, str) else entry.key


def _id_of(entry: PendingInfo | str) -> str | None:
    return None if isinstance(entry, str) else encode_id(entry.upload_id)
