"""ListObjectVersions of a bucket that never had versions: each object is its one version, null."""

from __future__ import annotations

from typing import Any

from calque.gateway.request import Response
from calque.gateway.verbs.buckets.listing import Asked, describe_page, take_page
from calque.gateway.verbs.call import Call, answer

NULL = "null"


def list_object_versions(call: Call) -> Response:
    """A page of objects in byte order, as versions."""
    asked = Asked.of(call)
    marker = call.query.get("key-marker", "")
    page = take_page(call, asked, marker, passed=True)
    described = describe_page(call, asked, page, with_owner=True)
    versions: list[dict[str, Any]] = described.pop("Contents")
    content = {
        **described,
        "KeyMarker": asked.show(marker),
        "VersionIdMarker": call.query.get("version-id-marker", ""),
        "NextKeyMarker": asked.show(page.last) if page.more else None,
        "NextVersionIdMarker": NULL if page.more else None,
        "Version": [{**each, "VersionId": NULL, "IsLatest": True} for each in versions],
    }
    return answer("ListVersionsResult", content)
