"""GetBucketCors, PutBucketCors and DeleteBucketCors."""

from __future__ import annotations

from calque.gateway.cors import KIND, parse_rules
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call

LARGEST = 64 * 1024


def get_bucket_cors(call: Call) -> Response:
    """The rules as they were given."""
    document = call.documents.get(call.project, call.bucket, KIND)
    if document is None:
        raise S3Error("NoSuchCORSConfiguration", "The CORS configuration does not exist")
    return Response(200, {"Content-Type": "application/xml"}, document)


def put_bucket_cors(call: Call) -> Response:
    """Replace the rules."""
    document = call.body().read_all(LARGEST)
    parse_rules(document)
    call.documents.put(call.project, call.bucket, KIND, document)
    return Response(200)


def delete_bucket_cors(call: Call) -> Response:
    """Forget the rules."""
    call.documents.delete(call.project, call.bucket, KIND)
    return Response(204)
