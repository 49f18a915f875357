"""The service of a table in the words of the table libraries.

Options are given once, in the words of the Operator. What a library needs to know of them, and the
credentials of the moment, are handed over from the very service that calque itself reads with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from calque.errors import Unsupported
from calque.operator import Operator

if TYPE_CHECKING:
    from calque.operator.services.s3.options_for_others import Handover


def delta_options(operator: Operator, options: Mapping[str, object]) -> dict[str, str] | None:
    """Storage options of deltalake; None where it needs none."""
    access = _handover(operator, options)
    if access is None:
        return None
    scheme, _, host = access.origin.partition("://")
    bucket = operator.location("").rstrip("/").rpartition("/")[2]
    told = {
        "aws_endpoint": f"{scheme}://{bucket}.{host}" if access.virtual else access.origin,
        "aws_virtual_hosted_style_request": str(access.virtual).lower(),
        "aws_allow_http": str(scheme == "http").lower(),
        "aws_region": access.region,
        # A commit is a put that the server refuses if the log's next entry is there.
        "conditional_put": "etag",
    }
    if access.keys is None:
        return {**told, "aws_skip_signature": "true"}
    told["aws_access_key_id"] = access.keys.access_key
    told["aws_secret_access_key"] = access.keys.secret_key
    if access.keys.token is not None:
        told["aws_session_token"] = access.keys.token
    return told


def iceberg_properties(operator: Operator, options: Mapping[str, object]) -> dict[str, str]:
    """Properties of pyiceberg's FileIO."""
    access = _handover(operator, options)
    if access is None:
        return {}
    told = {
        "s3.endpoint": access.origin,
        "s3.force-virtual-addressing": str(access.virtual).lower(),
        "s3.region": access.region,
    }
    if access.keys is None:
        return {**told, "s3.anonymous": "true"}
    told["s3.access-key-id"] = access.keys.access_key
    told["s3.secret-access-key"] = access.keys.secret_key
    if access.keys.token is not None:
        told["s3.session-token"] = access.keys.token
    return told


def _handover(operator: Operator, options: Mapping[str, object]) -> Handover | None:
    if operator.scheme == "s3":
        found: Handover = operator.service.handover()  # type: ignore[attr-defined]
        return found
    if options and operator.scheme not in ("fs", "file"):
        raise Unsupported(
            f"options of a table on {operator.scheme}:// do not reach its library yet",
            hint="Leave them out and set the environment variables of the service.",
        )
    return None
