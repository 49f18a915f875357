"""GetBucketLifecycleConfiguration, PutBucketLifecycleConfiguration and DeleteBucketLifecycle."""

from __future__ import annotations

from calque.gateway.errors import S3Error
from calque.gateway.lifecycle import KIND, parse_rules
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call

LARGEST = 1 << 20


def get_bucket_lifecycle(call: Call) -> Response:
    """The rules as they were given."""
    document = call.documents.get(call.project, call.bucket, KIND)
    if document is None:
        raise S3Error("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist")
    return Response(200, {"Content-Type": "application/xml"}, document)


def put_bucket_lifecycle(call: Call) -> Response:
    """Replace the rules; they count for what is written from now on."""
    document = call.body().read_all(LARGEST)
    parse_rules(document)
    call.documents.put(call.project, call.bucket, KIND, document)
    return Response(200)


def delete_bucket_lifecycle(call: Call) -> Response:
    """Forget the rules; what has an expiry keeps it."""
    call.documents.delete(call.project, call.bucket, KIND)
    return Response(204)
