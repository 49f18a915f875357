"""Bytes of an object, resumed where a reply was cut off."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing

from calque.errors import CalqueError, ConditionNotMatch, IntegrityError, Unavailable
from calque.operator.options import ReadOptions
from calque.operator.services.s3.client import Client, Request, Stream, refusal_behind
from calque.operator.services.s3.replies import bare_etag, quoted_etag

_PIECE = 256 * 1024
_RESUMED_AT_MOST = 5
"""New requests in a row that bring nothing."""


def read(client: Client, path: str, key: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range. After a cut it goes on at the same offset of the same bytes."""
    if options.range.length == 0:
        client.send("read", path, Request("HEAD", key, _query(options), _pins(options.if_match)))
        return
    end = None if options.range.length is None else options.range.offset + options.range.length
    position, pin, idle = options.range.offset, options.if_match, 0
    while end is None or position < end:
        stream = _open(client, path, key, options, position, end, pin)
        if stream is None:
            return
        with closing(stream):
            _refuse_other(client, key, stream, pin)
            pin = pin or bare_etag(stream.headers.get("etag"))
            end = _end_of(stream, position, end)
            try:
                for piece in stream.pieces(_PIECE):
                    position, idle = position + len(piece), 0
                    yield piece
            except Unavailable:
                idle += 1
                if pin is None or idle > _RESUMED_AT_MOST:
                    raise
                time.sleep(random.uniform(0.5, 1.0) * 0.05 * 2**idle)
                continue
        if end is None:
            return


def _refuse_other(client: Client, key: str, stream: Stream, pin: str | None) -> None:
    """Not every server obeys If-Match: what it sends must be the pinned bytes by its own word."""
    told = bare_etag(stream.headers.get("etag"))
    if pin is not None and told is not None and told != bare_etag(pin):
        raise ConditionNotMatch(f"{client.location(key)} was replaced by another object")


def _open(
    client: Client,
    path: str,
    key: str,
    options: ReadOptions,
    position: int,
    end: int | None,
    pin: str | None,
) -> Stream | None:
    """The reply from a position; None where the object ends before it."""
    headers = _pins(pin)
    if position or end is not None:
        headers["range"] = f"bytes={position}-{'' if end is None else end - 1}"
    request = Request("GET", key, _query(options), headers, accepts=(200, 206))
    try:
        stream = client.open("read", path, request)
    except CalqueError as error:
        refusal = refusal_behind(error)
        if refusal is not None and refusal.status == 416:
            return None
        raise
    if position and stream.status != 206:
        stream.close()
        raise IntegrityError(f"{client.location(key)}: the server ignores ranges")
    return stream


def _end_of(stream: Stream, position: int, end: int | None) -> int | None:
    """Where the bytes of this reply end: what a cut is measured by."""
    length = stream.headers.get("content-length")
    return end if length is None else position + int(length)


def _query(options: ReadOptions) -> list[tuple[str, str]]:
    return [("versionId", options.version)] if options.version else []


def _pins(pin: str | None) -> dict[str, str]:
    return {} if pin is None else {"if-match": quoted_etag(pin)}
