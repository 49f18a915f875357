"""What S3 knows of an object: its headers, and its tags where it has any."""

from __future__ import annotations

from dataclasses import replace

from calque.errors import NotFound, PermissionDenied, Unsupported
from calque.operator.services.s3.client import Client, Request, refusal_behind
from calque.operator.services.s3.replies import local_name, metadata_of, parse_document
from calque.values import Metadata

_ASK = {"x-amz-checksum-mode": "ENABLED"}
_UNTAGGED = ("NoSuchTagSet", "NoSuchTagSetError")
"""What some servers answer of an object that has no tags."""


def stat(client: Client, path: str, key: str, *, version: str | None = None) -> Metadata:
    """Everything about an object; tags cost a second request, sent only where there are some."""
    found, tagged = _head(client, path, key, version)
    if not tagged:
        return replace(found, tags={})
    return replace(found, tags=tags_of(client, path, key, version or found.version))


def head(client: Client, path: str, key: str, *, version: str | None = None) -> Metadata:
    """The headers of an object alone."""
    return _head(client, path, key, version)[0]


def _head(client: Client, path: str, key: str, version: str | None) -> tuple[Metadata, bool]:
    query = [("versionId", version)] if version else []
    request = Request("HEAD", key, query=query, headers=_ASK)
    try:
        answer = client.send("stat", path, request)
    except NotFound as error:
        if not client.link.bucket_seen:
            # A HEAD says nothing but 404: whether the bucket is missing must be asked.
            _ask_for_bucket(client, path)
        error.message = f"{client.location(key)} does not exist"
        error.args = (error.message,)
        raise
    return metadata_of(path, answer.headers), answer.headers.get("x-amz-tagging-count", "0") != "0"


def _ask_for_bucket(client: Client, path: str) -> None:
    try:
        client.send("stat", path, Request("HEAD", None))
    except NotFound as error:
        raise NotFound(
            f"the bucket {client.location(None)} does not exist",
            hint="Check the bucket's name, and that the endpoint is the right one.",
        ) from error
    except PermissionDenied:
        client.link.bucket_seen = True


def tags_of(client: Client, path: str, key: str, version: str | None) -> dict[str, str] | None:
    """The tags of an object; None where they may not be read."""
    try:
        return _ask_for_tags(client, path, key, version)
    except (PermissionDenied, Unsupported):
        return None


def tags_to_carry(client: Client, path: str, key: str, version: str | None) -> dict[str, str]:
    """The tags that a copy has to carry over; raises where there may be some it cannot read.

    A HEAD that tells of no tags proves nothing: whoever may not read them is not told that there
    are any. A server without tags (501) is believed, unless it counts some.
    """
    try:
        return _ask_for_tags(client, path, key, version)
    except PermissionDenied as error:
        error.hint = "Allow reading them (s3:GetObjectTagging), or copy with carry_tags=False."
        raise
    except Unsupported as error:
        if not _head(client, path, key, version)[1]:
            return {}
        error.hint = "It counts some, though: copy with carry_tags=False to leave them."
        raise


def _ask_for_tags(client: Client, path: str, key: str, version: str | None) -> dict[str, str]:
    query = [("tagging", "")]
    if version:
        query.append(("versionId", version))
    try:
        answer = client.send("tags", path, Request("GET", key, query=query))
    except NotFound as error:
        refusal = refusal_behind(error)
        if refusal is not None and refusal.code in _UNTAGGED:
            return {}
        raise
    # By a real parser: a tag that is written in another way than Amazon's would be lost.
    tree = parse_document(answer.body, "Tagging", f"the tags of {client.location(key)}")
    tags = [each for each in tree.iter() if local_name(each) == "Tag"]
    pairs = ({local_name(leaf): leaf.text or "" for leaf in tag} for tag in tags)
    return {pair.get("Key", ""): pair.get("Value", "") for pair in pairs}
