"""CopyObject: one transaction of metadata, whatever the size of the object."""

from __future__ import annotations

from collections.abc import Mapping

from calque.errors import ConditionNotMatch, NotFound, ResourceExhausted
from calque.gateway.conditions import WriteCondition, check_copy_source, condition_of_write
from calque.gateway.content import (
    SYSTEM,
    checksum_fields,
    checksum_of,
    etag_of,
    map_of_headers,
    parse_tags,
    refuse_unoffered,
    tags_of,
    with_tags,
)
from calque.gateway.copy_source import CopySource, parse_copy_source
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer
from calque.store.uplink.objects import ObjectInfo

_TRIES = 3


def copy_object(call: Call) -> Response:
    """Copy an object within the store; the target is old or new, never half."""
    refuse_unoffered(call.headers)
    source = parse_copy_source(call.headers["x-amz-copy-source"])
    for _ in range(_TRIES - 1):
        try:
            return _copy_once(call, source)
        except (ConditionNotMatch, NotFound):  # replaced or gone between the look and the commit
            continue
    return _copy_once(call, source)


def _copy_once(call: Call, source: CopySource) -> Response:
    found = stat_source(call, source)
    metadata = _map_of_copy(call, found)
    if metadata is None and (source.bucket, source.key) == (call.bucket, call.key):
        raise S3Error(
            "InvalidRequest",
            "This copy request is illegal because it is trying to copy an object to itself "
            "without changing the object's metadata, storage class, website redirect location or "
            "encryption attributes.",
        )
    condition = condition_of_write(call.headers, call.stat)
    info = _refer(call, source, found, metadata, condition)
    return answer(
        "CopyObjectResult",
        {
            "ETag": etag_of(info),
            "LastModified": info.created,
            **checksum_fields(checksum_of(info)),
        },
    )


def _refer(
    call: Call,
    source: CopySource,
    found: ObjectInfo,
    metadata: Mapping[str, str] | None,
    condition: WriteCondition,
) -> ObjectInfo:
    """A reference to the source; where it has as many as it may have, its bytes once more."""
    try:
        return call.project.copy_object(
            source.bucket,
            source.key,
            call.bucket,
            call.key,
            metadata=metadata,
            source_if_match=found.etag,
            if_not_exists=condition.if_not_exists,
            if_match=condition.if_match,
        )
    except ResourceExhausted:
        # Either that limit, or a quota, which refuses the bytes as well.
        download = call.project.download(source.bucket, source.key, if_match=found.etag)
        return call.project.upload(
            call.bucket,
            call.key,
            download,
            metadata=found.metadata if metadata is None else metadata,
            expires=found.expires,
            if_not_exists=condition.if_not_exists,
            if_match=condition.if_match,
        )


def stat_source(call: Call, source: CopySource) -> ObjectInfo:
    """The source, after its conditions were looked at; NoSuchKey or NoSuchBucket of its own."""
    try:
        found = call.project.stat(source.bucket, source.key)
    except NotFound as error:
        raise _missing_source(call, source) from error
    check_copy_source(call.headers, found)
    return found


def _missing_source(call: Call, source: CopySource) -> S3Error:
    try:
        call.project.stat_bucket(source.bucket)
    except NotFound:
        return S3Error("NoSuchBucket", "The specified bucket does not exist")
    return S3Error("NoSuchKey", "The specified key does not exist.", fields={"Key": source.key})


def _map_of_copy(call: Call, source: ObjectInfo) -> Mapping[str, str] | None:
    """What is kept with the copy; None where all is carried over."""
    replaces = _is_replace(call, "x-amz-metadata-directive")
    retags = _is_replace(call, "x-amz-tagging-directive")
    if not replaces and not retags:
        return None
    # What describes the bytes follows them, whatever is said anew.
    stored = dict(source.metadata)
    if replaces:
        kept = {name: source.metadata[name] for name in SYSTEM if name in source.metadata}
        stored = map_of_headers(call.headers) | kept
    tags = tags_of(source.metadata)
    if retags:
        tags = parse_tags(call.headers.get("x-amz-tagging", ""))
    return with_tags(stored, tags)


def _is_replace(call: Call, name: str) -> bool:
    value = call.headers.get(name, "COPY").upper()
    if value not in ("COPY", "REPLACE"):
        raise S3Error("InvalidArgument", f"Unknown directive in {name}.")
    return value == "REPLACE"
