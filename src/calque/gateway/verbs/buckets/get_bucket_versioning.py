"""GetBucketVersioning."""

from __future__ import annotations

from calque.gateway.request import Response
from calque.gateway.verbs.call import Call, answer


def get_bucket_versioning(call: Call) -> Response:
    """Empty: versions were never enabled."""
    call.project.stat_bucket(call.bucket)
    return answer("VersioningConfiguration", {})
