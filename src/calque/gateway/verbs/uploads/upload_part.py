"""UploadPart."""

from __future__ import annotations

from calque.gateway.body.checksums import Checksum
from calque.gateway.content import refuse_unoffered
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call
from calque.gateway.verbs.uploads.upload import ALGORITHM, PartNote, open_upload, part_number


def upload_part(call: Call) -> Response:
    """Store one part; one of the same number is replaced when this one is whole."""
    refuse_unoffered(call.headers)
    number = part_number(call)
    call.require_permission()
    upload = open_upload(call)
    algorithm = upload.metadata.get(ALGORITHM)
    body = call.body(also=[algorithm] if algorithm else ())
    given = [name for name in body.names if name != algorithm]
    if algorithm and given:
        raise S3Error(
            "InvalidRequest",
            f"Checksum Type mismatch occurred, expected checksum Type: {algorithm.lower()}, "
            f"actual checksum Type: {given[0].lower()}",
        )
    upload.upload_part(number, body, etag=lambda: str(PartNote.of_body(body)))
    note = PartNote.of_body(body)
    headers = {"ETag": f'"{note.etag}"'}
    headers |= {Checksum(*each).header: each[1] for each in note.checksums.items()}
    return Response(200, headers)
