"""DeleteBucket."""

from __future__ import annotations

from calque.errors import FailedPrecondition
from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call


def delete_bucket(call: Call) -> Response:
    """Delete a bucket without objects, and the uploads under way in it, in one transaction."""
    try:
        call.project.delete_bucket(call.bucket)
    except FailedPrecondition as error:
        raise S3Error("BucketNotEmpty", "The bucket you tried to delete is not empty") from error
    call.documents.forget()
    return Response(204)
