"""What every verb gets: the request, who sent it, what it names, and the project behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from calque.errors import NotFound
from calque.gateway.body.body import Body
from calque.gateway.documents import BucketDocuments
from calque.gateway.errors import S3Error
from calque.gateway.lifecycle import KIND as LIFECYCLE
from calque.gateway.lifecycle import find_expiry, parse_rules
from calque.gateway.request import Headers, Request, Response, parse_query
from calque.gateway.signature.authenticate import Identity
from calque.gateway.xml import Element, read_document, write_document
from calque.store.metainfo import Action
from calque.store.project import Project
from calque.store.uplink.objects import ObjectInfo

LARGEST_DOCUMENT = 8 << 20


@dataclass(frozen=True)
class Call:
    """One authenticated request on its way through a verb."""

    request: Request
    identity: Identity
    project: Project
    bucket: str
    key: str
    region: str
    documents: BucketDocuments

    @property
    def headers(self) -> Headers:
        return self.request.headers

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The query in plain text; InvalidURI for what is no UTF-8."""
        try:
            return {
                name.encode("latin-1").decode(): value.encode("latin-1").decode()
                for name, value in parse_query(self.request.query)
            }
        except UnicodeError as error:
            raise S3Error("InvalidURI", "Couldn't parse the specified URI.") from error

    def body(self, *, also: Iterable[str] = ()) -> Body:
        """The body, verified as it is read."""
        return Body(self.request, self.identity, also=also)

    def document(self, root: str) -> Element:
        """The body as a document with this root."""
        body = Body(self.request, self.identity, is_object=root != "CompleteMultipartUpload")
        return read_document(body.read_all(LARGEST_DOCUMENT), root)

    def stat(self) -> ObjectInfo:
        """The object; NoSuchKey or NoSuchBucket."""
        return self.project.stat(self.bucket, self.key)

    def expiry(self) -> datetime | None:
        """When what is written now expires, by the rules of the bucket."""
        project_id = self.project.session.limits.project_id
        document = self.documents.find(project_id, self.bucket, LIFECYCLE)
        if document is None:
            return None
        return find_expiry(parse_rules(document), self.key, datetime.now(UTC))

    def require_write(self, size: int) -> None:
        """AccessDenied or NoSuchBucket before the first byte of a body is asked for.

        The satellite decides again in the end; this saves a client from sending gigabytes first.
        """
        self.require_permission()
        if size > self.project.session.limits.inline_size:
            self.project.stat_bucket(self.bucket)

    def require_permission(self) -> None:
        """AccessDenied for a key that may not write here."""
        restrictions = [*self.project.access.api_key.restrictions()]
        if restrictions:  # only restricted keys need the encrypted name
            located = self.project.session.locate(self.bucket, self.key)
            if not all(
                each.allows(Action.WRITE, self.bucket, located.encrypted) for each in restrictions
            ):
                raise S3Error("AccessDenied", "Access Denied")

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A number of the query; InvalidArgument outside its borders."""
        text = self.query.get(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 10):
            raise S3Error("InvalidArgument", f"Provided {name} not an integer or within range")
        found = int(text)
        if found < least:
            raise S3Error("InvalidArgument", f"Argument {name} must be at least {least}")
        return min(found, most)


def answer(root: str, content: Mapping[str, Any], **headers: str) -> Response:
    """A document as a response."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(
        200, {"Content-Type": "application/xml", **named}, write_document(root, content)
    )


def missing_of(call: Call, error: NotFound) -> S3Error:
    """NoSuchBucket, NoSuchUpload or NoSuchKey: the store misses something, we look what."""
    if call.bucket:
        try:
            call.project.stat_bucket(call.bucket)
        except NotFound:
            return S3Error(
                "NoSuchBucket",
                "The specified bucket does not exist",
                fields={"BucketName": call.bucket},
            )
    if "uploadId" in call.query:
        return S3Error("NoSuchUpload", "The specified upload does not exist.")
    return S3Error("NoSuchKey", "The specified key does not exist.", fields={"Key": call.key})
