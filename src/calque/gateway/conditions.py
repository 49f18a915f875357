"""Conditions of requests: on what is read, on what is copied, on what is replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from calque.errors import NotFound, PermissionDenied
from calque.gateway.content import etag_of, http_time
from calque.gateway.errors import S3Error, not_implemented
from calque.gateway.request import Headers
from calque.store.uplink.objects import ObjectInfo

READ = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")


@dataclass(frozen=True, slots=True)
class WriteCondition:
    """What must hold in the commit, in the words of the store."""

    if_not_exists: bool = False
    if_match: str | None = None


def check_read(headers: Mapping[str, str], info: ObjectInfo) -> None:
    """NotModified or PreconditionFailed, in the order of RFC 9110 (section 13.2.2)."""
    match, none_match = headers.get("if-match"), headers.get("if-none-match")
    if match is not None:
        if not matches(match, info):
            raise failed("If-Match")
    elif _is_after(info, headers.get("if-unmodified-since")) is True:
        raise failed("If-Unmodified-Since")
    if none_match is not None:
        if matches(none_match, info):
            raise _not_modified(info)
    elif _is_after(info, headers.get("if-modified-since")) is False:
        raise _not_modified(info)


def is_range_meant(headers: Mapping[str, str], info: ObjectInfo) -> bool:
    """Whether a Range still counts: an If-Range means the rest of an object that did not change."""
    given = headers.get("if-range")
    if given is None:
        return True
    if '"' in given:  # a weak validator is never good enough for a part
        return given.strip() == etag_of(info)
    return parse_time(given) == info.created.replace(microsecond=0)


def check_copy_source(headers: Headers, info: ObjectInfo) -> None:
    """The same of the source of a copy, where every failure is PreconditionFailed."""
    given = {
        name: headers["x-amz-copy-source-" + name]
        for name in READ
        if "x-amz-copy-source-" + name in headers
    }
    try:
        check_read(given, info)
    except S3Error as error:
        raise failed("x-amz-copy-source-if") from error


def condition_of_write(
    headers: Headers, stat: Callable[[], ObjectInfo], *, may_have_none: bool = True
) -> WriteCondition:
    """What a write demands of its target: looked at now, and checked again in the commit.

    ``If-None-Match`` of an ETag holds for anything else, and for nothing: what was found is what
    the commit then demands.
    """
    none_match, match = headers.get("if-none-match"), headers.get("if-match")
    for name in ("if-modified-since", "if-unmodified-since"):
        if name in headers:
            raise not_implemented(f"{name} on a write")
    if none_match is not None and not may_have_none:
        raise not_implemented("If-None-Match on a delete")
    if match is not None:
        info = stat()
        if not matches(match, info):
            raise failed("If-Match")
        if none_match is not None and matches(none_match, info):
            raise failed("If-None-Match")
        return WriteCondition(if_match=info.etag)
    if none_match is None:
        return WriteCondition()
    found = _find(stat)
    if found is None:
        return WriteCondition(if_not_exists=True)
    if matches(none_match, found):
        raise failed("If-None-Match")
    return WriteCondition(if_match=found.etag)


def matches(header: str, info: ObjectInfo) -> bool:
    """Whether a list of ETags, quoted or not, names this object."""
    mine = etag_of(info).strip('"')
    for given in header.split(","):
        if given.strip().removeprefix("W/").strip('"') in (mine, "*"):
            return True
    return False


def parse_time(text: str) -> datetime | None:
    """A time of HTTP, or of ISO 8601 as some clients send it; None for what is none."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = parse(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None


def failed(condition: str) -> S3Error:
    return S3Error(
        "PreconditionFailed",
        "At least one of the pre-conditions you specified did not hold",
        fields={"Condition": condition},
    )


def _find(stat: Callable[[], ObjectInfo]) -> ObjectInfo | None:
    try:
        return stat()
    except (NotFound, PermissionDenied):  # who may not look is told by the commit
        return None


def _is_after(info: ObjectInfo, text: str | None) -> bool | None:
    """Whether the object is younger than a time; None for no time, or one that is none."""
    moment = parse_time(text) if text is not None else None
    if moment is None:
        return None
    return info.created - moment >= timedelta(seconds=1)  # headers know no parts of a second


def _not_modified(info: ObjectInfo) -> S3Error:
    headers = {"ETag": etag_of(info), "Last-Modified": http_time(info)}
    return S3Error("NotModified", headers=headers)
