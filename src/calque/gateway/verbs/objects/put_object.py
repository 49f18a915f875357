"""PutObject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from calque.gateway.body.checksums import PREFIX, WIDTHS, Checksum
from calque.gateway.conditions import condition_of_write
from calque.gateway.content import CHECKSUM, ETAG, map_of_headers
from calque.gateway.errors import not_implemented
from calque.gateway.request import Headers, Response
from calque.gateway.verbs.call import Call
from calque.store.uplink.objects import ObjectInfo


class Digested(Protocol):
    """Bytes whose digests are known at their end."""

    def __iter__(self) -> Iterator[bytes]: ...

    @property
    def md5(self) -> str: ...

    @property
    def checksums(self) -> dict[str, str]: ...


def put_object(call: Call) -> Response:
    """Store a body as an object, whole or not at all; conditions are checked in the commit."""
    if "x-amz-write-offset-bytes" in call.headers:
        raise not_implemented("appending to objects")
    stored = map_of_headers(call.headers)
    body = call.body(also=_asked_checksum(call.headers))
    call.require_write(body.size)
    info = store_body(call, body, stored)
    headers = {"ETag": f'"{info.metadata[ETAG]}"'}
    found = Checksum.parse(info.metadata.get(CHECKSUM, ""))
    if found:
        headers |= {found.header: found.value, "x-amz-checksum-type": found.kind}
    return Response(200, headers)


def _asked_checksum(headers: Headers) -> list[str]:
    """A checksum that is to be made although the client sends none."""
    asked = headers.get("x-amz-sdk-checksum-algorithm", "").upper()
    is_given = "x-amz-trailer" in headers or any(name.startswith(PREFIX) for name in headers)
    return [asked] if asked in WIDTHS and not is_given else []


def store_body(call: Call, body: Digested, stored: dict[str, str]) -> ObjectInfo:
    """The body as the object at the call's key, with what its bytes are known by."""
    condition = condition_of_write(call.headers, call.stat)

    def complete() -> dict[str, str]:
        """Called after the last byte, which is when digests are known."""
        made = [Checksum(*each) for each in body.checksums.items()]
        known = {ETAG: body.md5} | ({CHECKSUM: str(made[0])} if made else {})
        return stored | known

    return call.project.upload(
        call.bucket,
        call.key,
        body,
        metadata=complete,
        expires=call.expiry(),
        if_not_exists=condition.if_not_exists,
        if_match=condition.if_match,
    )
