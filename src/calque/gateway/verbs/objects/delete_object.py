"""DeleteObject."""

from __future__ import annotations

from calque.errors import NotFound
from calque.gateway.conditions import condition_of_write
from calque.gateway.errors import not_implemented
from calque.gateway.request import Response
from calque.gateway.verbs.call import Call


def delete_object(call: Call) -> Response:
    """Delete an object; one that is not there is deleted already."""
    for name in ("x-amz-if-match-size", "x-amz-if-match-last-modified-time"):
        if name in call.headers:
            raise not_implemented(f"the condition {name}")
    condition = condition_of_write(call.headers, call.stat, may_have_none=False)
    try:
        call.project.delete_object(call.bucket, call.key, if_match=condition.if_match)
    except NotFound:
        call.project.stat_bucket(call.bucket)
    return Response(204)
