"""What both versions of ListObjects share: a page of keys, folded at a delimiter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from calque.gateway.content import checksum_of, etag_of
from calque.gateway.errors import S3Error
from calque.gateway.verbs.call import Call
from calque.gateway.verbs.owner import owner_of
from calque.store.uplink.objects import ObjectInfo, PrefixInfo

MOST = 1000
LAG = 60.0
"""Seconds that a later page may lag behind what others write."""
_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a listing is to show."""

    prefix: str
    delimiter: str
    most: int
    is_encoded: bool

    @classmethod
    def of(cls, call: Call) -> Asked:
        encoding = call.query.get("encoding-type")
        if encoding and encoding != "url":
            raise S3Error("InvalidArgument", "Invalid Encoding Method specified in Request")
        return cls(
            call.query.get("prefix", ""),
            call.query.get("delimiter", ""),
            call.number("max-keys", MOST, 0, MOST),
            bool(encoding),
        )

    def is_common(self, text: str) -> bool:
        """Whether a text is a common prefix of this listing, and so stands for all below it."""
        if not self.delimiter or not text.startswith(self.prefix):
            return False
        at = text.find(self.delimiter, len(self.prefix))
        return at >= 0 and at + len(self.delimiter) == len(text)

    def show(self, text: str) -> str:
        return quote(text, safe="/") if self.is_encoded else text


@dataclass
class Page:
    """Objects and common prefixes, in one order; ``last`` is the last of either."""

    objects: list[ObjectInfo] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    last: str = ""
    more: bool = False


def take_page(call: Call, asked: Asked, after: str, *, passed: bool, max_age: float = 0.0) -> Page:
    """Up to ``asked.most`` entries after a key; ``passed``: a common prefix ``after`` was shown.

    ``max_age``: seconds by which a page may lag behind what others write meanwhile.
    """
    page = Page()
    passed = passed and asked.is_common(after)
    if asked.most == 0:
        call.project.stat_bucket(call.bucket)
        return page
    start = after + _LAST if passed else after
    for entry in _entries(call, asked, start, max_age):
        if entry == after:  # a common prefix that was shown before
            continue
        if len(page.objects) + len(page.prefixes) == asked.most:
            page.more = True
            break
        if isinstance(entry, str):
            page.prefixes.append(entry)
            page.last = entry
        else:
            page.objects.append(entry)
            page.last = entry.key
    return page


def _entries(call: Call, asked: Asked, start: str, max_age: float) -> Iterator[ObjectInfo | str]:
    if asked.delimiter == "/":
        return _levels(call, asked, start, max_age)
    if asked.delimiter:
        return _folded(call, asked, start, max_age)
    return _objects(call, asked.prefix, start, max_age)


def _objects(call: Call, prefix: str, start: str, max_age: float) -> Iterator[ObjectInfo]:
    for entry in call.project.list_objects(
        call.bucket, prefix, start_after=start, with_metadata=True, max_age=max_age
    ):
        assert isinstance(entry, ObjectInfo)
        yield entry


def _levels(call: Call, asked: Asked, start: str, max_age: float) -> Iterator[ObjectInfo | str]:
    """Folded at the slash: the store itself keeps such levels."""
    for entry in call.project.list_objects(
        call.bucket,
        asked.prefix,
        start_after=start,
        recursive=False,
        with_metadata=True,
        max_age=max_age,
    ):
        yield entry.key if isinstance(entry, PrefixInfo) else entry


def _folded(call: Call, asked: Asked, start: str, max_age: float) -> Iterator[ObjectInfo | str]:
    """Folded at any other text: keys below a common prefix are jumped over, not read."""
    shown = ""
    while True:
        for entry in _objects(call, asked.prefix, start, max_age):
            at = entry.key.find(asked.delimiter, len(asked.prefix))
            if at < 0:
                yield entry
                continue
            common = entry.key[: at + len(asked.delimiter)]
            if common == shown:  # a key behind the last character that there is
                continue
            yield common
            shown, start = common, common + _LAST
            break
        else:
            return


def describe_page(call: Call, asked: Asked, page: Page, *, with_owner: bool) -> dict[str, Any]:
    """The part of the document that both versions have."""
    owner = owner_of(call) if with_owner else None
    return {
        "Name": call.bucket,
        "Prefix": asked.show(asked.prefix),
        "Delimiter": asked.show(asked.delimiter) or None,
        "MaxKeys": asked.most,
        "EncodingType": "url" if asked.is_encoded else None,
        "IsTruncated": page.more,
        "Contents": [_describe(each, asked, owner) for each in page.objects],
        "CommonPrefixes": [{"Prefix": asked.show(each)} for each in page.prefixes],
    }


def _describe(info: ObjectInfo, asked: Asked, owner: dict[str, str] | None) -> dict[str, Any]:
    checksum = checksum_of(info)
    return {
        "Key": asked.show(info.key),
        "LastModified": info.created,
        "ETag": etag_of(info),
        "ChecksumAlgorithm": checksum.algorithm if checksum else None,
        "ChecksumType": checksum.kind if checksum else None,
        "Size": info.size,
        "StorageClass": "STANDARD",
        "Owner": owner,
    }
