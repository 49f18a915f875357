"""ListMultipartUploads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from calque.gateway.request import Response
from calque.gateway.verbs.buckets.listing import LAG, Asked
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.owner import owner_of
from calque.gateway.verbs.uploads.upload import encode_id
from calque.store.uplink.kept_uploads import PendingInfo

MOST = 1000


def list_multipart_uploads(call: Call) -> Response:
    """Uploads under way, by key and then by the time they began, a page at a time."""
    asked = Asked.of(call)
    most = call.number("max-uploads", MOST, 0, MOST)
    marker, id_marker = call.query.get("key-marker", ""), call.query.get("upload-id-marker", "")
    page: list[PendingInfo | str] = []
    more = False
    for entry in _fold(_uploads_from(call, asked, marker, id_marker), asked, marker):
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


def _uploads_from(call: Call, asked: Asked, marker: str, id_marker: str) -> Iterator[PendingInfo]:
    """Uploads behind the marks of the page before; of that one's moment, which makes it cheap."""
    call.project.stat_bucket(call.bucket)
    parent = asked.prefix[: asked.prefix.rfind("/") + 1]
    max_age = LAG if marker else 0.0
    found = call.project.sort_pending(call.bucket, parent, max_age=max_age)
    place = _place_behind(found, marker, id_marker)
    for number in range(max(place, _find_place(found, asked.prefix)), len(found)):
        if not found[number].key.startswith(asked.prefix):
            return
        yield found[number]


def _find_place(uploads: Sequence[PendingInfo], key: str) -> int:
    return bisect_left(uploads, key.encode(), key=lambda each: each.key.encode())


def _place_behind(uploads: Sequence[PendingInfo], marker: str, id_marker: str) -> int:
    """Behind one upload of a key, or behind all of them.

    Where that one is gone by now (who lists often aborts) those of its key are shown, rather once
    more than not at all.
    """
    first = place = _find_place(uploads, marker)
    while marker and place < len(uploads) and uploads[place].key == marker:
        place += 1
        if id_marker and encode_id(uploads[place - 1].upload_id) == id_marker:
            return place
    return first if id_marker else place


def _fold(uploads: Iterable[PendingInfo], asked: Asked, marker: str) -> Iterator[PendingInfo | str]:
    common = ""
    for each in uploads:
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
