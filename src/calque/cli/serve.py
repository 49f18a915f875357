"""``calque serve``: the satellite of a store, for clients in other processes."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say
from calque.errors import InvalidInput
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metainfo.tls import ServerCertificate
from calque.store.serve import serve_metrics, serve_store

_LOOK_EVERY = 0.5
"""Seconds."""

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
    json: JsonFlag = False,
) -> None:
    """Serve a store over gRPC until Ctrl-C.

    calque serve ./data --port 7777

    calque serve ./data --host 0.0.0.0 --tls-cert server.pem --tls-key server.key

    When the store is new its access grant is printed, once. Later: `calque store access`.
    """
    tls = _certificate(tls_cert, tls_key)
    new = not EmbeddedStore.exists(folder)
    if new:
        EmbeddedStore.create(folder, StoreOptions(passphrase=passphrase)).close()
    store = EmbeddedStore.open(folder)
    try:
        with ExitStack() as stack:
            served = stack.enter_context(serve_store(store, f"{host}:{port}", tls=tls))
            metrics = None
            if metrics_port is not None:
                metrics = stack.enter_context(serve_metrics(store, metrics_port))
            grant = None
            if new:
                grant = replace(store.grant(passphrase or None), address=served.address).serialize()
            if tls is None and not _is_loopback(host):
                say("warning: the connection is not encrypted; give --tls-cert and --tls-key")
            signals = _catch_signals()
            _announce(served.address, grant, metrics, json)
            while not signals:
                time.sleep(_LOOK_EVERY)
    finally:
        store.close()
    say("stopped")


def _certificate(certificate: Path | None, key: Path | None) -> ServerCertificate | None:
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


def _announce(address: str, grant: str | None, metrics: str | None, json: bool) -> None:
    if json:
        as_json({"address": address, "access": grant, "metrics": metrics})
        sys.stdout.flush()
        return
    say(f"serving {address} (Ctrl-C stops)")
    if metrics is not None:
        say(f"metrics at {metrics}")
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
