"""DeleteObjects: up to a thousand keys in one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calque.errors import CalqueError, NotFound
from calque.gateway.conditions import matches
from calque.gateway.errors import S3Error, not_implemented, to_s3_error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.xml import Element, malformed

MOST = 1000


@dataclass(frozen=True, slots=True)
class _Wanted:
    key: str
    etag: str | None


def delete_objects(call: Call) -> Response:
    """Delete each key; each has its own result, and a missing one is deleted already."""
    document = call.document("Delete")
    quiet = (document.get("Quiet") or "false").strip().lower() == "true"
    wanted = [_read(each) for each in document.children("Object")]
    if not 1 <= len(wanted) <= MOST:
        raise malformed("Between 1 and 1,000 keys are deleted in one request.")
    call.project.stat_bucket(call.bucket)
    deleted: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    for each in wanted:
        try:
            _delete(call, each)
        except CalqueError as error:
            found = to_s3_error(error)
            errors.append({"Key": each.key, "Code": found.code, "Message": found.message})
        else:
            deleted.append({"Key": each.key})
    return answer("DeleteResult", {"Deleted": [] if quiet else deleted, "Error": errors})


def _read(element: Element) -> _Wanted:
    element.allow_only(("Key", "VersionId", "ETag", "LastModifiedTime", "Size"))
    if element.get("VersionId") not in (None, "", "null"):
        raise not_implemented("versions")
    for name in ("LastModifiedTime", "Size"):
        if element.get(name) is not None:
            raise not_implemented(f"deletes with a condition on {name}")
    return _Wanted(element.require("Key"), element.get("ETag"))


def _delete(call: Call, wanted: _Wanted) -> None:
    if not wanted.key:
        raise S3Error("UserKeyMustBeSpecified", "You must provide a key.")
    stream = None
    if wanted.etag is not None:
        try:
            info = call.project.stat(call.bucket, wanted.key)
        except NotFound:
            raise S3Error("NoSuchKey", "The specified key does not exist.") from None
        if not matches(wanted.etag, info):
            raise S3Error("PreconditionFailed", "The ETag is not that of the object.")
        stream = info.etag
    call.project.delete_object(call.bucket, wanted.key, if_match=stream)
