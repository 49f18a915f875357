"""``calque serve``: a store for others: S3, satellite and relay."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say
from calque.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from calque.cli.serve_s3 import ServedS3
    from calque.store.metainfo.tls import ServerCertificate

_LOOK_EVERY = 0.5
"""Seconds."""

_S3_PORT = 9000

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def serve(
    folder: Annotated[
        Path, typer.Argument(help="The folder of the store; made if there is none.")
    ] = Path("./data"),
    host: Annotated[
        str, typer.Option(help="The address to listen on; the default is this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 7777,
    passphrase: Annotated[
        str | None, typer.Option(envvar="CALQUE_PASSPHRASE", show_envvar=True)
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="PEM file with the server's certificate: speak TLS.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="PEM file with the private key of the certificate.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Answer Prometheus on this port of this machine."),
    ] = None,
    s3: Annotated[bool, typer.Option(help="Answer S3, too.")] = True,
    s3_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help=f"The port of S3: {_S3_PORT}, or a free one where --port is 0.",
        ),
    ] = None,
    s3_domain: Annotated[
        list[str] | None,
        typer.Option(
            help="Requests to BUCKET.DOMAIN mean that bucket; may be given several times."
        ),
    ] = None,
    s3_region: Annotated[
        str, typer.Option(help="The region that S3 clients are told.")
    ] = "us-east-1",
    json: JsonFlag = False,
) -> None:
    """Serve a store until Ctrl-C: over S3 to every tool, over gRPC to calque's own clients.

    calque serve ./data

    calque serve ./data --host 0.0.0.0 --tls-cert server.pem --tls-key server.key

    When the store is new its access grant is printed, once; later: `calque store access`. When it
    has no S3 key one is made and printed, once; others: `calque store s3-key`.
    """
    from calque.store.embedded import EmbeddedStore, StoreOptions
    from calque.store.serve import serve_metrics, serve_store

    tls = _certificate(tls_cert, tls_key)
    if s3 and not _has_gateway(required=s3_port is not None):
        s3 = False
    new = not EmbeddedStore.exists(folder)
    if new:
        EmbeddedStore.create(folder, StoreOptions(passphrase=passphrase)).close()
    store = EmbeddedStore.open(folder)
    try:
        with ExitStack() as stack:
            served = stack.enter_context(serve_store(store, f"{host}:{port}", tls=tls))
            answered = None
            if s3:
                from calque.cli.serve_s3 import serve_s3

                chosen = s3_port if s3_port is not None else (_S3_PORT if port else 0)
                answered = stack.enter_context(
                    serve_s3(
                        store,
                        host,
                        chosen,
                        domains=s3_domain or (),
                        region=s3_region,
                        passphrase=passphrase,
                        tls=tls,
                    )
                )
            metrics = None
            if metrics_port is not None:
                metrics = stack.enter_context(serve_metrics(store, metrics_port))
            grant = None
            if new:
                grant = replace(store.grant(passphrase or None), address=served.address).serialize()
            if tls is None and not _is_loopback(host):
                say("warning: the connection is not encrypted; give --tls-cert and --tls-key")
            signals = _catch_signals()
            _announce(served.address, grant, metrics, answered, json)
            while not signals:
                time.sleep(_LOOK_EVERY)
    finally:
        store.close()
    say("stopped")


def _certificate(certificate: Path | None, key: Path | None) -> ServerCertificate | None:
    from calque.store.metainfo.tls import ServerCertificate

    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InvalidInput("TLS needs both --tls-cert and --tls-key")
    return ServerCertificate(certificate, key)


def _is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _has_gateway(*, required: bool) -> bool:
    """Whether S3 can be answered: the store alone is served without its extra."""
    from calque.gateway.required_packages import require_gateway_extra

    try:
        require_gateway_extra()
    except MissingExtra as error:
        if required:
            raise
        say(f"without S3: {error}")
        return False
    return True


def _announce(
    address: str, grant: str | None, metrics: str | None, s3: ServedS3 | None, json: bool
) -> None:
    key = s3.key if s3 else None
    if json:
        shown = {"endpoint": s3.endpoint, **(asdict(key) if key else {})} if s3 else None
        as_json({"address": address, "access": grant, "metrics": metrics, "s3": shown})
        sys.stdout.flush()
        return
    say(f"serving {address} (Ctrl-C stops)")
    if metrics is not None:
        say(f"metrics at {metrics}")
    if s3 is not None:
        say(f"S3 at {s3.endpoint}")
    if key is not None:
        say("a key for S3, shown this once; whoever has it has everything in the store:")
        print(f"AWS_ACCESS_KEY_ID={key.access_key_id}")
        print(f"AWS_SECRET_ACCESS_KEY={key.secret_access_key}", flush=True)
    if grant is not None:
        say("access grant, shown this once; whoever has it has everything in the store:")
        print(grant, flush=True)


def _catch_signals() -> list[int]:
    """SIGINT and SIGTERM, as they come from now on: both let what runs end and leave cleanly.

    A list, because the handler may run while this thread holds the lock of anything better; and
    it is looked at now and then, because another thread may get the signal and wake nobody.
    """
    caught: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: caught.append(number))
    return caught
