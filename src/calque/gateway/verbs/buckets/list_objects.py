"""ListObjects, the first version, which rclone still sends."""

from __future__ import annotations

from calque.gateway.request import Response
from calque.gateway.verbs.buckets.listing import Asked, describe_page, take_page
from calque.gateway.verbs.call import Call, answer
from calque.gateway.xml import is_text


def list_objects(call: Call) -> Response:
    """A page of keys in byte order, after a marker, which may be a common prefix."""
    asked = Asked.of(call)
    marker = call.query.get("marker", "")
    page = take_page(call, asked, marker, passed=True)
    # Without a delimiter clients go on from the last key, and S3 tells no marker.
    next_marker = asked.show(page.last) if page.more and asked.delimiter else None
    content = {
        **describe_page(call, asked, page, with_owner=True),
        # The one text that boto3 does not decode in this version, since S3 does not encode it.
        "Prefix": asked.prefix if is_text(asked.prefix) else asked.show(asked.prefix),
        "Marker": asked.show(marker),
        "NextMarker": next_marker,
    }
    return answer("ListBucketResult", content)
