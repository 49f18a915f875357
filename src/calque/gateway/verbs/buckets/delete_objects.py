"""DeleteObjects: up to a thousand keys in one request, and in one transaction."""

from __future__ import annotations

from calque.errors import CalqueError, NotFound
from calque.gateway.conditions import failed, matches
from calque.gateway.errors import S3Error, not_implemented, to_s3_error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.gateway.xml import Element, malformed

MOST = 1000


def delete_objects(call: Call) -> Response:
    """Delete each key; each has its own result, and a missing one is deleted already."""
    document = call.document("Delete")
    quiet = (document.get("Quiet") or "false").strip().lower() == "true"
    wanted = [_read(each) for each in document.children("Object")]
    if not 1 <= len(wanted) <= MOST:
        raise malformed("Between 1 and 1,000 keys are deleted in one request.")
    call.project.stat_bucket(call.bucket)
    errors: dict[str, S3Error] = {}
    streams: dict[str, str | None] = {}
    for key, etag in dict(wanted).items():
        try:
            streams[key] = _find_stream(call, key, etag)
        except CalqueError as error:
            errors[key] = to_s3_error(error)
    for each in call.project.delete_objects(call.bucket, streams):
        if each.error is not None:
            errors[each.key] = to_s3_error(each.error)
    deleted = [{"Key": key} for key in streams if key not in errors]
    return answer(
        "DeleteResult",
        {
            "Deleted": [] if quiet else deleted,
            "Error": [
                {"Key": key, "Code": error.code, "Message": error.message}
                for key, error in errors.items()
            ],
        },
    )


def _read(element: Element) -> tuple[str, str | None]:
    element.allow_only(("Key", "VersionId", "ETag", "LastModifiedTime", "Size"))
    if element.get("VersionId") not in (None, "", "null"):
        raise not_implemented("versions")
    for name in ("LastModifiedTime", "Size"):
        if element.get(name) is not None:
            raise not_implemented(f"deletes with a condition on {name}")
    return element.require("Key"), element.get("ETag")


def _find_stream(call: Call, key: str, etag: str | None) -> str | None:
    """The contents that a condition means; they are checked again in the transaction."""
    if not key:
        raise S3Error("UserKeyMustBeSpecified", "You must provide a key.")
    if etag is None:
        return None
    try:
        info = call.project.stat(call.bucket, key)
    except NotFound:
        raise S3Error("NoSuchKey", "The specified key does not exist.") from None
    if not matches(etag, info):
        raise failed("ETag")
    return info.etag
