"""What another S3 client in this process needs to reach the bucket as we do."""

from __future__ import annotations

from dataclasses import dataclass

from calque.operator.services.s3.client import Link
from calque.operator.services.s3.signing import Keys


@dataclass(frozen=True, slots=True)
class Handover:
    """Where the bucket is and who asks, resolved at this moment: ask again before long.

    The keys show in no repr and are never pickled.
    """

    origin: str
    """Scheme and host of the server, without the bucket."""
    virtual: bool
    """The bucket is the first label of the host."""
    region: str
    keys: Keys | None
    """None: anonymous."""


def handover(link: Link) -> Handover:
    """Resolve endpoint and credentials; PermissionDenied where there are none."""
    endpoint = link.account.endpoint()
    host = endpoint.host if endpoint.prefix else endpoint.host.partition(".")[2]
    return Handover(
        origin=f"{endpoint.scheme}://{host}",
        virtual=not endpoint.prefix,
        region=endpoint.region,
        keys=link.account.keys(),
    )
