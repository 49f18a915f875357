"""From a request to one verb; what is not offered is refused by name, not taken for another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from calque.gateway.errors import S3Error, not_implemented
from calque.gateway.request import Response
from calque.gateway.signature.presigned_v2 import CARRIED
from calque.gateway.verbs.buckets.bucket_cors import (
    delete_bucket_cors,
    get_bucket_cors,
    put_bucket_cors,
)
from calque.gateway.verbs.buckets.bucket_lifecycle import (
    delete_bucket_lifecycle,
    get_bucket_lifecycle,
    put_bucket_lifecycle,
)
from calque.gateway.verbs.buckets.create_bucket import create_bucket
from calque.gateway.verbs.buckets.delete_bucket import delete_bucket
from calque.gateway.verbs.buckets.delete_objects import delete_objects
from calque.gateway.verbs.buckets.get_bucket_location import get_bucket_location
from calque.gateway.verbs.buckets.get_bucket_versioning import get_bucket_versioning
from calque.gateway.verbs.buckets.head_bucket import head_bucket
from calque.gateway.verbs.buckets.list_buckets import list_buckets
from calque.gateway.verbs.buckets.list_object_versions import NULL, list_object_versions
from calque.gateway.verbs.buckets.list_objects import list_objects
from calque.gateway.verbs.buckets.list_objects_v2 import list_objects_v2
from calque.gateway.verbs.buckets.transfer_prefix import COPY, MOVE, copy_prefix, move_prefix
from calque.gateway.verbs.call import Call
from calque.gateway.verbs.objects.copy_object import copy_object
from calque.gateway.verbs.objects.delete_object import delete_object
from calque.gateway.verbs.objects.get_object import get_object, head_object
from calque.gateway.verbs.objects.get_object_attributes import get_object_attributes
from calque.gateway.verbs.objects.object_tagging import (
    delete_object_tagging,
    get_object_tagging,
    put_object_tagging,
)
from calque.gateway.verbs.objects.put_object import put_object
from calque.gateway.verbs.uploads.abort_multipart_upload import abort_multipart_upload
from calque.gateway.verbs.uploads.complete_multipart_upload import complete_multipart_upload
from calque.gateway.verbs.uploads.create_multipart_upload import create_multipart_upload
from calque.gateway.verbs.uploads.list_multipart_uploads import list_multipart_uploads
from calque.gateway.verbs.uploads.list_parts import list_parts
from calque.gateway.verbs.uploads.upload_part import upload_part
from calque.gateway.verbs.uploads.upload_part_copy import upload_part_copy

SERVICE, BUCKET, OBJECT = "service", "bucket", "object"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of S3: where it applies, what tells it from the plain one, what else it takes."""

    name: str
    level: str
    method: str
    run: Callable[[Call], Response]
    marks: frozenset[str] = frozenset()
    """Names of the query that mean this verb."""
    header: str | None = None
    """A header that means this verb."""
    takes: frozenset[str] = frozenset()
    """Further names of the query."""


def _verb(
    name: str,
    where: str,
    run: Callable[[Call], Response],
    *,
    marks: str = "",
    header: str | None = None,
    takes: str = "",
) -> Verb:
    level, _, method = where.partition(" ")
    return Verb(
        name, level, method, run, frozenset(marks.split()), header, frozenset(takes.split())
    )


_LISTING = "prefix delimiter max-keys encoding-type"
_READING = " ".join(
    ["partNumber"]
    + [
        f"response-{name}"
        for name in (
            "cache-control",
            "content-disposition",
            "content-encoding",
            "content-language",
            "content-type",
            "expires",
        )
    ]
)

VERBS = (
    _verb(
        "ListBuckets",
        "service GET",
        list_buckets,
        takes="max-buckets continuation-token prefix bucket-region",
    ),
    _verb("CreateBucket", "bucket PUT", create_bucket),
    _verb("HeadBucket", "bucket HEAD", head_bucket),
    _verb("DeleteBucket", "bucket DELETE", delete_bucket),
    _verb("GetBucketLocation", "bucket GET", get_bucket_location, marks="location"),
    _verb("GetBucketVersioning", "bucket GET", get_bucket_versioning, marks="versioning"),
    _verb("ListObjects", "bucket GET", list_objects, takes=f"{_LISTING} marker"),
    _verb(
        "ListObjectsV2",
        "bucket GET",
        list_objects_v2,
        marks="list-type",
        takes=f"{_LISTING} continuation-token start-after fetch-owner",
    ),
    _verb(
        "ListMultipartUploads",
        "bucket GET",
        list_multipart_uploads,
        marks="uploads",
        takes="prefix delimiter encoding-type max-uploads key-marker upload-id-marker",
    ),
    _verb("CreateMultipartUpload", "object POST", create_multipart_upload, marks="uploads"),
    _verb("UploadPart", "object PUT", upload_part, marks="partNumber uploadId"),
    _verb(
        "UploadPartCopy",
        "object PUT",
        upload_part_copy,
        marks="partNumber uploadId",
        header="x-amz-copy-source",
    ),
    _verb(
        "ListParts",
        "object GET",
        list_parts,
        marks="uploadId",
        takes="max-parts part-number-marker",
    ),
    _verb("CompleteMultipartUpload", "object POST", complete_multipart_upload, marks="uploadId"),
    _verb("AbortMultipartUpload", "object DELETE", abort_multipart_upload, marks="uploadId"),
    _verb(
        "ListObjectVersions",
        "bucket GET",
        list_object_versions,
        marks="versions",
        takes=f"{_LISTING} key-marker version-id-marker",
    ),
    _verb("DeleteObjects", "bucket POST", delete_objects, marks="delete"),
    _verb("GetBucketCors", "bucket GET", get_bucket_cors, marks="cors"),
    _verb("PutBucketCors", "bucket PUT", put_bucket_cors, marks="cors"),
    _verb("DeleteBucketCors", "bucket DELETE", delete_bucket_cors, marks="cors"),
    _verb("GetBucketLifecycle", "bucket GET", get_bucket_lifecycle, marks="lifecycle"),
    _verb("PutBucketLifecycle", "bucket PUT", put_bucket_lifecycle, marks="lifecycle"),
    _verb("DeleteBucketLifecycle", "bucket DELETE", delete_bucket_lifecycle, marks="lifecycle"),
    _verb("CopyPrefix", "bucket POST", copy_prefix, marks=COPY),
    _verb("MovePrefix", "bucket POST", move_prefix, marks=MOVE),
    _verb("GetObjectTagging", "object GET", get_object_tagging, marks="tagging"),
    _verb("PutObjectTagging", "object PUT", put_object_tagging, marks="tagging"),
    _verb("DeleteObjectTagging", "object DELETE", delete_object_tagging, marks="tagging"),
    _verb("GetObjectAttributes", "object GET", get_object_attributes, marks="attributes"),
    _verb("CopyObject", "object PUT", copy_object, header="x-amz-copy-source"),
    _verb("PutObject", "object PUT", put_object),
    _verb("GetObject", "object GET", get_object, takes=_READING),
    _verb("HeadObject", "object HEAD", head_object, takes=_READING),
    _verb("DeleteObject", "object DELETE", delete_object),
)

_NOT_OFFERED = {
    "accelerate": "accelerated transfers",
    "acl": "access control lists",
    "encryption": "settings of encryption",
    "inventory": "inventories",
    "legal-hold": "object locks",
    "logging": "logs of requests",
    "notification": "notifications",
    "object-lock": "object locks",
    "ownershipControls": "access control lists",
    "policy": "policies of buckets",
    "policyStatus": "policies of buckets",
    "publicAccessBlock": "access control lists",
    "replication": "replication",
    "requestPayment": "requests that others pay for",
    "restore": "archives",
    "retention": "object locks",
    "select": "queries of objects",
    "versionId": "versions of objects: each is its one version, null",
    "versioning": "versions of objects: each is its one version, null",
    "website": "websites",
}
"""What sub-resources of S3 mean that are answered with 501."""

_OF_SIGNATURES = frozenset({"AWSAccessKeyId", "Signature", "Expires"}) | CARRIED


def find_verb(
    level: str, method: str, query: Mapping[str, str], headers: Mapping[str, str]
) -> Verb:
    """The verb with the most marks that the request bears; NotImplemented for what is left over."""
    candidates = [each for each in VERBS if each.level == level and each.method == method]
    if not candidates:
        raise _not_allowed()
    fitting = [
        each
        for each in candidates
        if each.marks <= query.keys() and (each.header is None or each.header in headers)
    ]
    verb = max(fitting, key=lambda each: (len(each.marks), each.header is not None), default=None)
    unknown = sorted(
        name
        for name, value in query.items()
        if not _is_ignored(name)
        and not (name == "versionId" and value == NULL)  # the one version that there is
        and (verb is None or name not in verb.marks | verb.takes)
    )
    if verb is None and not unknown:
        raise _not_allowed()
    if verb is None or unknown:
        # A sub-resource that nobody here knows must not be taken for the plain verb.
        meant = sorted({_NOT_OFFERED[name] for name in unknown if name in _NOT_OFFERED})
        shown = f"{method} with ?{'&'.join(unknown)}"[:200]
        raise not_implemented(f"{', '.join(meant)} ({shown})" if meant else shown)
    return verb


def _not_allowed() -> S3Error:
    return S3Error("MethodNotAllowed", "The specified method is not allowed on this resource.")


def _is_ignored(name: str) -> bool:
    """Signatures, and what clients add for themselves: S3 ignores what begins with ``x-``."""
    return name in _OF_SIGNATURES or name.lower().startswith("x-")
