"""``calque serve``: a store for others: S3, satellite and relay, and a console to look at it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say
from calque.cli.stop_signals import catch_stop_signals
from calque.errors import ConfigInvalid, MissingExtra

if TYPE_CHECKING:
    from calque.cli.serve_s3 import ServedS3
    from calque.console.server import ServedConsole
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
        str | None,
        typer.Option(envvar="CALQUE_PASSPHRASE", show_envvar=True, help="Of a store that has one."),
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
    console: Annotated[bool, typer.Option(help="Show the store in a browser, too.")] = True,
    console_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="The port of the console: 7780, or a free one if that is taken."
        ),
    ] = None,
    console_name: Annotated[
        list[str] | None,
        typer.Option(
            help="A name that a proxy asks for the console by; may be given several times."
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Serve a store until Ctrl-C: over S3 to every tool, over gRPC to calque's own clients.

    calque serve ./data

    calque serve ./data --host 0.0.0.0 --tls-cert server.pem --tls-key server.key

    When the store is new its access grant is printed, once; later: `calque store access`. When it
    has no S3 key one is made and printed, once; others: `calque store s3-key`. The address of the
    console is printed with a token that signs one browser in.
    """
    from calque.console.required_packages import require_console_extra
    from calque.gateway.required_packages import require_gateway_extra
    from calque.store.embedded import EmbeddedStore, StoreOptions
    from calque.store.serve import serve_metrics, serve_store

    tls = _certificate(tls_cert, tls_key)
    if s3 and not _has_extra(require_gateway_extra, "S3", required=s3_port is not None):
        s3 = False
    if console and not _has_extra(
        require_console_extra, "a console", required=console_port is not None
    ):
        console = False
    new = not EmbeddedStore.exists(folder)
    if new:
        EmbeddedStore.create(folder, StoreOptions(passphrase=passphrase)).close()
        say(f"there was no store in {folder}: one was made")
    store = EmbeddedStore.open(folder)
    try:
        with ExitStack() as stack:
            listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            served = stack.enter_context(serve_store(store, listen, tls=tls))
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
            pages = None
            if console:
                from calque.cli.serve_console import serve_pages
                from calque.console.store_pages.object import S3Door

                pages = stack.enter_context(
                    serve_pages(
                        store,
                        host,
                        0 if console_port is None and not port else console_port,
                        passphrase=passphrase,
                        door=S3Door(answered.endpoint, s3_region) if answered else None,
                        tls=tls,
                        names=console_name or (),
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
            signals = catch_stop_signals()
            _announce(served.address, grant, metrics, answered, pages, json)
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
        raise ConfigInvalid("TLS needs both --tls-cert and --tls-key")
    return ServerCertificate(certificate, key)


def _is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _has_extra(require: Callable[[], None], what: str, *, required: bool) -> bool:
    """Whether it can be served, too: the store alone is served without the extra."""
    try:
        require()
    except MissingExtra as error:
        if required:
            raise
        say(f"without {what}: {error}")
        return False
    return True


def _announce(
    address: str,
    grant: str | None,
    metrics: str | None,
    s3: ServedS3 | None,
    pages: ServedConsole | None,
    json: bool,
) -> None:
    key = s3.key if s3 else None
    if json:
        shown = {"endpoint": s3.endpoint, **(asdict(key) if key else {})} if s3 else None
        seen = {"url": pages.url, "sign_in": pages.sign_in_url()} if pages else None
        told = {"address": address, "access": grant, "metrics": metrics, "s3": shown}
        as_json({**told, "console": seen})
        sys.stdout.flush()
        return
    say(f"serving {address} (Ctrl-C stops)")
    if metrics is not None:
        say(f"metrics at {metrics}")
    if s3 is not None:
        say(f"S3 at {s3.endpoint}")
    if pages is not None:
        say(f"console at {pages.url}; sign in, once, with {pages.sign_in_url()}")
    if key is not None:
        say("a key for S3, shown this once; whoever has it has everything in the store:")
        print(f"AWS_ACCESS_KEY_ID={key.access_key_id}")
        print(f"AWS_SECRET_ACCESS_KEY={key.secret_access_key}", flush=True)
    if grant is not None:
        say("access grant, shown this once; whoever has it has everything in the store:")
        print(grant, flush=True)
