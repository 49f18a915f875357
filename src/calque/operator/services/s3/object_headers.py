"""Headers that carry metadata, tags and storage class to an object that is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote
from xml.sax.saxutils import escape

from calque.errors import InvalidInput
from calque.operator.services.option_values import refuse_same_but_case
from calque.operator.services.s3.replies import quoted_etag

_MOST_TAGS_IN_HEADER = 2048
_MOST_TAGS = 10
_USER_LIMIT = 2048


class Described(Protocol):
    """What both Metadata and WriteOptions say of an object."""

    @property
    def content_type(self) -> str | None: ...
    @property
    def content_encoding(self) -> str | None: ...
    @property
    def content_language(self) -> str | None: ...
    @property
    def content_disposition(self) -> str | None: ...
    @property
    def cache_control(self) -> str | None: ...
    @property
    def expires(self) -> str | None: ...
    @property
    def user(self) -> Mapping[str, str]: ...


_FIELDS = (
    "content_type",
    "content_encoding",
    "content_language",
    "content_disposition",
    "cache_control",
    "expires",
)


def content_headers(by: Described) -> dict[str, str]:
    """Content headers and user metadata."""
    headers = {
        name.replace("_", "-"): value
        for name in _FIELDS
        if (value := getattr(by, name)) is not None
    }
    # Headers have no case, so two such names would become one and a value be lost.
    refuse_same_but_case("S3", by.user)
    for name, value in by.user.items():
        if not name or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise InvalidInput(
                f"{name!r} cannot name user metadata in S3",
                hint="Letters, digits, hyphens and underscores go into a header's name.",
            )
        headers[f"x-amz-meta-{name.lower()}"] = value
    return headers


def tags_header(tags: Mapping[str, str] | None) -> str | None:
    """Tags as ``x-amz-tagging``; None where there are none or they do not fit into a header."""
    if not tags:
        return None
    if len(tags) > _MOST_TAGS:
        raise InvalidInput(f"S3 keeps {_MOST_TAGS} tags on an object at most, not {len(tags)}")
    joined = "&".join(f"{quote(name, safe='')}={quote(tags[name], safe='')}" for name in tags)
    return joined if len(joined) <= _MOST_TAGS_IN_HEADER else None


def tags_document(tags: Mapping[str, str]) -> bytes:
    """Tags as PutObjectTagging wants them."""
    each = "".join(
        f"<Tag><Key>{escape(name)}</Key><Value>{escape(value)}</Value></Tag>"
        for name, value in tags.items()
    )
    return f"<Tagging><TagSet>{each}</TagSet></Tagging>".encode()


def target_conditions(if_not_exists: bool, if_match: str | None) -> dict[str, str]:
    """The headers of a condition on the target."""
    if if_not_exists:
        return {"if-none-match": "*"}
    return {} if if_match is None else {"if-match": quoted_etag(if_match)}
