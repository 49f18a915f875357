"""GetBucketLocation."""

from __future__ import annotations

from calque.gateway.request import Response
from calque.gateway.verbs.call import Call
from calque.gateway.xml import HEADER, NAMESPACE

_FIRST_REGION = "us-east-1"


def get_bucket_location(call: Call) -> Response:
    """The region of the gateway; S3 has no name for its first one."""
    call.project.stat_bucket(call.bucket)
    region = "" if call.region == _FIRST_REGION else call.region
    document = f'{HEADER}<LocationConstraint xmlns="{NAMESPACE}">{region}</LocationConstraint>'
    return Response(200, {"Content-Type": "application/xml"}, document.encode())
