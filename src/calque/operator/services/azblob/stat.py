"""A blob looked at: its headers, its tags, whether it is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from calque.errors import (
    ConditionNotMatch,
    NotFound,
    PermissionDenied,
    Unexpected,
    Unsupported,
)
from calque.operator.http.exchange import Answer
from calque.operator.services.azblob import resource
from calque.operator.services.azblob.client import Client
from calque.values import Metadata


def stat(client: Client, path: str) -> Metadata:
    """What is known of a blob; its tags are asked for apart where it has some."""
    # A HEAD tells how many tags there are and not which.
    found = resource.metadata_of(path, head(client, path))
    return found if found.tags is not None else replace(found, tags=_fetch_tags(client, path))


def head(client: Client, path: str, etag: str | None = None) -> Mapping[str, str]:
    """The headers that describe a blob, of this etag where one is given."""
    headers = {} if etag is None else {"If-Match": resource.quote_etag(etag)}
    return client.send("stat", path, "HEAD", headers=headers).headers


def exists(client: Client, path: str) -> bool:
    """Whether there is a blob; one that is only staged is none, one without blocks is one."""
    try:
        head(client, path)
    except NotFound:
        return False
    return True


def stat_made(client: Client, path: str, answer: Answer, size: int) -> Metadata:
    """The blob that an answer says was made, looked at by its etag.

    Where another writer has replaced it since, what the answer tells: never another's blob.
    """
    etag = resource.unquote_etag(answer.headers.get("etag"))
    if etag is None:
        raise Unexpected(f"Azure answered for {client.location(path)} without an etag")
    try:
        return resource.metadata_of(path, head(client, path, etag))
    except (ConditionNotMatch, NotFound):
        return Metadata(path=path, size=size, etag=etag)


def _fetch_tags(client: Client, path: str) -> dict[str, str] | None:
    """A blob's tags; None where we may not read them."""
    try:
        answer = client.send("stat", path, "GET", {"comp": "tags"})
    except PermissionDenied:
        return None
    return resource.tags_of(answer.body)


def tags_to_carry(client: Client, source: Metadata) -> Mapping[str, str]:
    """The tags of a blob that is copied; raises where it has some that we may not read."""
    if source.tags is None:
        raise PermissionDenied(
            f"the tags of {client.location(source.path)} cannot be read",
            hint="Allow reading them, or copy with carry_tags=False.",
        )
    return source.tags


def refuse_version(version: str | None) -> None:
    """Old versions of blobs have ids of their own, which calque does not ask for yet."""
    if version is not None:
        raise Unsupported("versions of Azure blobs are not served yet")
