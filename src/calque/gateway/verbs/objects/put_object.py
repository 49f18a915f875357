"""PutObject."""

from __future__ import annotations

from calque.gateway.body.body import Body
from calque.gateway.body.checksums import WIDTHS, Checksum
from calque.gateway.conditions import condition_of_write
from calque.gateway.content import CHECKSUM, ETAG, map_of_headers
from calque.gateway.errors import not_implemented
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call
from calque.store.chunks import ChunkReader
from calque.store.uplink.etags import stream_of
from calque.store.uplink.metadata import seal_metadata
from calque.store.uplink.objects import ObjectInfo
from calque.store.uplink.upload import begin_upload, commit_upload, give_up
from calque.store.uplink.write_segments import write_segments


def put_object(call: Call) -> Response:
    """Store a body as an object, whole or not at all; conditions are checked in the commit."""
    if "x-amz-write-offset-bytes" in call.headers:
        raise not_implemented("appending to objects")
    stored = map_of_headers(call.headers)
    asked = call.headers.get("x-amz-sdk-checksum-algorithm")
    body = call.body(also=[asked.upper()] if asked and asked.upper() in WIDTHS else ())
    info = store_body(call, body, stored)
    headers = {"ETag": f'"{info.metadata[ETAG]}"'}
    found = Checksum.parse(info.metadata.get(CHECKSUM, ""))
    if found:
        headers |= {found.header: found.value, "x-amz-checksum-type": found.kind}
    return Response(200, headers)


def store_body(call: Call, body: Body, stored: dict[str, str]) -> ObjectInfo:
    """The body as the object at the call's key, with what its bytes are known by."""
    condition = condition_of_write(call.headers, call.stat)

    def complete() -> dict[str, str]:
        """Called after the last byte, which is when digests are known."""
        made = [Checksum(*each) for each in body.checksums.items()]
        known = {ETAG: body.md5} | ({CHECKSUM: str(made[0])} if made else {})
        return stored | known

    session = call.project.session
    upload = begin_upload(session, session.locate(call.bucket, call.key), {}, None)
    try:
        write_segments(session, upload, ChunkReader(body))
        sealed = seal_metadata(upload.parameters.suite, upload.located, complete())
        return commit_upload(
            session,
            upload,
            metadata=sealed,
            if_not_exists=condition.if_not_exists,
            if_match=stream_of(condition.if_match),
        )
    except BaseException:
        give_up(session, upload)
        raise
