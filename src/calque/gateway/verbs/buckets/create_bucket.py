"""CreateBucket."""

from __future__ import annotations

import re

from calque.errors import AlreadyExists
from calque.gateway.content import refuse_unoffered
from calque.gateway.errors import S3Error, not_implemented
from calque.gateway.request import Response
from calque.gateway.verbs.call import LARGEST_DOCUMENT, Call
from calque.gateway.xml import read_document

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ADDRESS = re.compile(r"(\d+\.){3}\d+")


def create_bucket(call: Call) -> Response:
    """Make a bucket; again by its owner is no error. Any region is taken for ours."""
    refuse_unoffered(call.headers)
    if call.headers.get("x-amz-bucket-object-lock-enabled", "false").lower() == "true":
        raise not_implemented("object locks")
    name = call.bucket
    if not _NAME.fullmatch(name) or ".." in name or _ADDRESS.fullmatch(name):
        raise S3Error("InvalidBucketName", "The specified bucket is not valid.")
    if call.headers.get("content-length", "0") != "0":
        data = call.body().read_all(LARGEST_DOCUMENT)
        if data.strip():
            read_document(data, "CreateBucketConfiguration")
    try:
        call.project.create_bucket(call.bucket)
    except AlreadyExists:
        call.project.stat_bucket(call.bucket)
    call.documents.forget()
    return Response(200, {"Location": f"/{call.bucket}"})
