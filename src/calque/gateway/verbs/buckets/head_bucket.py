"""HeadBucket."""

from __future__ import annotations

from calque.gateway.request import Response
from calque.gateway.verbs.call import Call


def head_bucket(call: Call) -> Response:
    """Whether a bucket is there and may be used."""
    call.project.stat_bucket(call.bucket)
    return Response(200, {"x-amz-bucket-region": call.region, "Content-Type": "application/xml"})
