"""A request for an object, signed in its URL for others to send."""

from __future__ import annotations

from collections.abc import Mapping

from calque.errors import InvalidInput
from calque.operator.services.s3.client import PAYING, Client

_LONGEST = 7 * 24 * 3600
"""S3 takes no signature that is to last longer."""


def presign(client: Client, method: str, key: str, seconds: int) -> tuple[str, Mapping[str, str]]:
    """The URL, and the headers that must be sent with it."""
    if seconds > _LONGEST:
        raise InvalidInput(f"a signature of S3 lasts a week at most, not {seconds} seconds")
    endpoint, _, signer = client.link.parts()
    keys = client.link.account.keys()
    path = endpoint.path(key)
    paid = PAYING if client.link.config.requester_pays else {}
    url = f"{endpoint.origin}{path}"
    if keys is None:  # anonymous: whoever has the address may ask
        return url, paid
    signed = {"host": endpoint.host, **paid}
    pairs = signer.presign(keys, method, path, signed, seconds)
    return f"{url}?{'&'.join(f'{name}={value}' for name, value in pairs)}", paid
