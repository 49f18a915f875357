"""ListParts."""

from __future__ import annotations

from typing import Any

from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.verbs.owner import owner_of
from calque.gateway.verbs.uploads.upload import ALGORITHM, KIND, PartNote, open_upload
from calque.store.uplink.parts import PartInfo

MOST = 1000


def list_parts(call: Call) -> Response:
    """The parts that are there, by number, a page at a time."""
    upload = open_upload(call)
    most = call.number("max-parts", MOST, 0, MOST)
    after = call.number("part-number-marker", 0, 0, 2**31)
    found = [part for part in upload.parts() if part.number > after]
    page = found[:most]
    more = len(found) > len(page)
    owner = owner_of(call)
    return answer(
        "ListPartsResult",
        {
            "Bucket": call.bucket,
            "Key": call.key,
            "UploadId": call.query["uploadId"],
            "Initiator": owner,
            "Owner": owner,
            "StorageClass": "STANDARD",
            "PartNumberMarker": after,
            "NextPartNumberMarker": page[-1].number if page else after,
            "MaxParts": most,
            "IsTruncated": more,
            "ChecksumAlgorithm": upload.metadata.get(ALGORITHM),
            "ChecksumType": upload.metadata.get(KIND),
            "Part": [_describe(part) for part in page],
        },
    )


def _describe(part: PartInfo) -> dict[str, Any]:
    note = PartNote.of(part)
    return {
        "PartNumber": part.number,
        "LastModified": part.modified,
        "ETag": f'"{note.etag}"',
        "Size": part.size,
        **{f"Checksum{name}": value for name, value in note.checksums.items()},
    }
