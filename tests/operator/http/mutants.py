"""Replies with one thing wrong: a header, the status, a value of a document, or some bytes."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.operator.http.replies import Answer

JUNK = (
    *("", "-1", "1e400", "٣", "²", "9" * 25, "9" * 5000, "NaN", "\x01", "ten", "0x10", " 5 "),
    *("5;6", '"', 'W/"x"', "bytes 1-3/5", "2025-13-45T99:99:99Z", "9999-12-31T23:59:59-23:59"),
    *("0001-01-01T00:00:00Z", "Thu, 01 Jan 0000 00:00:00 GMT", "Wed, 01 Jan 99999 00:00:00 GMT"),
    *("=?utf-8?b?////?=", "=?x?q?y?=", "\udcff\udcfe", "<", "&#1114112;", "&#xFFFFF;", "&#55296;"),
    *("&bogus;", "../..", "/", "%zz%ff", "pending", "failed", "9223372036854775808", "1" * 18),
)
_VALUES = (None, [], {}, "", -1, 1e308, True, [1], {"a": 1}, 5.5, float("nan"), float("inf"))
_HEADERS = (
    *(
        "ETag",
        "Content-Length",
        "Content-Range",
        "Last-Modified",
        "Retry-After",
        "Content-Encoding",
    ),
    *("Transfer-Encoding", "Location", "Range", "x-amz-meta-z", "x-amz-version-id"),
    *("x-amz-checksum-crc32", "x-goog-hash", "x-goog-generation", "x-ms-meta-_xd800_"),
    *("x-ms-tag-count", "x-ms-copy-status"),
)
_STATUSES = (
    *("200 OK", "201 C", "202 A", "204 N", "206 P", "301 M", "304 N", "308 R", "400 B", "403 F"),
    *("404 N", "409 C", "412 P", "416 R", "500 E", "503 S", "999 X"),
)
_WHOLE = (b"<a>" * 3000, b"[" * 5000, b"{}", b"null", b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')


def mutate(answer: Answer, chance: random.Random) -> Answer:
    """The answer with one thing in it that is wrong."""
    kind = chance.random()
    if kind < 0.45 or (not answer.body and kind < 0.9):
        return replace(answer, headers=_mutate_headers(answer.headers, chance))
    if kind < 0.5 or not answer.body:
        return replace(answer, status=chance.choice(_STATUSES))
    return replace(answer, body=_mutate_body(answer.body, chance))


def _mutate_headers(headers: dict[str, str], chance: random.Random) -> dict[str, str]:
    name = chance.choice(_HEADERS if chance.random() < 0.3 or not headers else tuple(headers))
    if name in headers and chance.random() < 0.3:
        return {each: value for each, value in headers.items() if each != name}
    return {**headers, name: chance.choice(JUNK)}


def _mutate_body(body: bytes, chance: random.Random) -> bytes:
    if body.startswith(b"{") and chance.random() < 0.8:
        changed = _mutate_value(json.loads(body), chance)
        return json.dumps(changed).encode()
    if body.startswith(b"<") and chance.random() < 0.7:
        found = [*re.finditer(rb">([^<>]+)<", body), *re.finditer(rb"<(/?\w+)", body)]
        start, end = chance.choice(found).span(1)
        junk = chance.choice(JUNK).encode("utf-8", "surrogateescape")
        return body[:start] + junk + body[end:]
    start = chance.randrange(len(body))
    end = min(len(body), start + chance.randrange(1, 30))
    cuts = (body[:start] + body[end:], body[:end] + body[start:], body[:start])
    return chance.choice((*cuts, body[:start] + chance.randbytes(3) + body[end:], *_WHOLE))


def _mutate_value(document: Any, chance: random.Random) -> Any:
    path = chance.choice(list(_paths(document)))
    value = chance.choice((*_VALUES, *JUNK))
    if not path:
        return value
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    if isinstance(holder, dict) and chance.random() < 0.25:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return document


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else ()
    for step, each in enumerate(value) if isinstance(value, list) else inner:
        yield from _paths(each, (*path, step))
