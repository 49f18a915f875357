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
    """Scheme, host and, rarely, path of the server, without the bucket."""
    virtual: bool
    """The bucket is the first label of the host."""
    region: str
    keys: Keys | None
    """None: anonymous."""


def handover(link: Link) -> Handover:
    """Resolve endpoint and credentials; PermissionDenied where there are none."""
    endpoint = link.account.endpoint()
    bucket = link.config.bucket
    host = endpoint.host if endpoint.prefix else endpoint.host.removeprefix(f"{bucket}.")
    return Handover(
        origin=f"{endpoint.scheme}://{host}{endpoint.prefix.removesuffix(f'/{bucket}')}",
        virtual=not endpoint.prefix,
        region=endpoint.region,
        keys=link.account.keys(),
    )
