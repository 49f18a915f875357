"""The S3 side of ``calque serve``: the endpoint, and the key that a first start makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from calque.cli.output import say
from calque.gateway.gateway import Gateway, GatewayOptions
from calque.gateway.keys import NewKey
from calque.gateway.server import serve_gateway
from calque.store.embedded import EmbeddedStore
from calque.store.metainfo.tls import ServerCertificate


@dataclass(frozen=True, slots=True)
class ServedS3:
    """Where S3 is answered; the key, when this start made it."""

    endpoint: str
    key: NewKey | None = field(repr=False)


@contextmanager
def serve_s3(
    store: EmbeddedStore,
    host: str,
    port: int,
    *,
    domains: Sequence[str],
    region: str,
    passphrase: str | None,
    tls: ServerCertificate | None,
) -> Iterator[ServedS3]:
    """Answer S3 for the length of a ``with`` block."""
    gateway = Gateway(
        store, GatewayOptions(region=region, domains=("localhost", *map(str.lower, domains)))
    )
    with serve_gateway(gateway, host, port, tls=tls) as endpoint:
        yield ServedS3(endpoint, _first_key(gateway, store, passphrase))


def _first_key(gateway: Gateway, store: EmbeddedStore, passphrase: str | None) -> NewKey | None:
    if gateway.keys.has_any():
        return None
    if store.has_passphrase and not passphrase:
        say("S3 has no key yet, and the store has a passphrase: `calque store s3-key` makes one")
        return None
    grant = store.grant(passphrase if store.has_passphrase else None)
    return gateway.keys.make(grant, name="made by the first start of calque serve")
