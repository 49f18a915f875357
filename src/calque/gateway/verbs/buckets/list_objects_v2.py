"""ListObjectsV2."""

from __future__ import annotations

import base64
import binascii

from calque.gateway.errors import S3Error
from calque.gateway.request import Response
from calque.gateway.verbs.buckets.listing import LAG, Asked, describe_page, take_page
from calque.gateway.verbs.call import Call, answer


def list_objects_v2(call: Call) -> Response:
    """A page of keys in byte order; the token says where the next one begins."""
    asked = Asked.of(call)
    token = call.query.get("continuation-token")
    if token:
        after, passed = _open_token(token)
    else:
        after, passed = call.query.get("start-after", ""), False
    # Pages that follow a first one may be of the same moment: that is what makes them cheap.
    page = take_page(call, asked, after, passed=passed, max_age=LAG if token else 0.0)
    with_owner = call.query.get("fetch-owner", "false").lower() == "true"
    content = {
        **describe_page(call, asked, page, with_owner=with_owner),
        "KeyCount": len(page.objects) + len(page.prefixes),
        "ContinuationToken": token,
        "NextContinuationToken": _make_token(page.last) if page.more else None,
        "StartAfter": asked.show(call.query["start-after"])
        if "start-after" in call.query
        else None,
    }
    return answer("ListBucketResult", content)


def _make_token(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode()


def _open_token(token: str) -> tuple[str, bool]:
    try:
        after = base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise S3Error("InvalidArgument", "The continuation token provided is incorrect") from error
    if not after:
        raise S3Error("InvalidArgument", "The continuation token provided is incorrect")
    return after, True
