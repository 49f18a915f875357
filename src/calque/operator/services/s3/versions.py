"""Every version of the objects under a prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import unquote_plus

from calque.errors import Unexpected
from calque.operator.http.told_sizes import count_of
from calque.operator.services.s3.client import Client, Request
from calque.operator.services.s3.replies import bare_etag, blocks, leaves, moment
from calque.values import Metadata


def list_versions(
    client: Client, path: str, prefix: str, *, page_size: int, path_of: Callable[[str], str]
) -> Iterator[Metadata]:
    """As S3 lists them: keys in order, the newest first. Deletes, which have no bytes, are none."""
    markers: list[tuple[str, str]] = []
    while True:
        query = [("versions", ""), ("encoding-type", "url"), ("max-keys", str(page_size))]
        query += [("prefix", prefix), *markers]
        body = client.send("list", path, Request("GET", None, query=query)).body
        if b"ListVersionsResult" not in body:
            raise Unexpected(f"{client.location(prefix)}: the reply to a listing is none")
        head = leaves(body)
        decode = unquote_plus if head.get("EncodingType") == "url" else str
        try:
            versions = [_version(leaves(each), decode, path_of) for each in blocks(body, "Version")]
        except (KeyError, ValueError) as error:
            raise Unexpected(
                f"{client.location(prefix)}: the server lists what cannot be read: {error}"
            ) from error
        yield from versions
        if head.get("IsTruncated") != "true":
            return
        following = [
            ("key-marker", decode(head.get("NextKeyMarker", ""))),
            ("version-id-marker", head.get("NextVersionIdMarker", "")),
        ]
        if following == markers or not following[0][1]:
            raise Unexpected(f"{client.location(prefix)}: a listing does not say where it goes on")
        markers = following


def _version(
    fields: dict[str, str], decode: Callable[[str], str], path_of: Callable[[str], str]
) -> Metadata:
    path = path_of(decode(fields["Key"]))
    listed = Metadata.from_listing(
        path,
        count_of(fields["Size"]),
        moment(fields.get("LastModified")),
        etag=bare_etag(fields.get("ETag")),
        storage_class=fields.get("StorageClass"),
    )
    return replace(listed, version=fields["VersionId"], is_dir=path.endswith("/"))
