"""``calque console``: a page with loads, errors and trees of the ledger."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from calque.cli.flags.settings_flags import Config, LedgerUrl
from calque.cli.output import JsonFlag, as_json, say
from calque.cli.stop_signals import catch_stop_signals
from calque.errors import ConfigInvalid

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_LOOK_EVERY = 0.5
"""Seconds."""


@app.command()
def console(
    host: Annotated[
        str, typer.Option(help="The address to listen on; the default is this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="The port: 7780, or a free one where that is taken."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A name that a proxy asks for it by; may be given several times."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="PEM file with the server's certificate: speak TLS.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="PEM file with the private key of the certificate.")
    ] = None,
    ledger: LedgerUrl = None,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Show loads, their errors, and runs over trees in a browser, until Ctrl-C.

    It shows what the ledger remembers. `calque serve` shows a store as well. Open the address that
    is printed: the token in it signs one browser in.

    calque console

    calque console --ledger postgresql://db/ledger --port 8080
    """
    from calque.config import load_settings
    from calque.console.required_packages import require_console_extra
    from calque.ledger.configured import environment_of, existing_ledger_of

    if (tls_cert is None) != (tls_key is None):
        raise ConfigInvalid("TLS needs both --tls-cert and --tls-key")
    require_console_extra()
    from calque.console.hosts import is_loopback
    from calque.console.ledger_pages.section import ledger_section
    from calque.console.server import PORT, is_free, serve_console
    from calque.console.site import Site

    settings = load_settings(config, flags={"ledger.url": ledger})
    pages = ledger_section(lambda: existing_ledger_of(settings), environment_of(settings))
    site = Site([pages], announce=_tell_token)
    chosen = port if port is not None else (PORT if is_free(host, PORT) else 0)
    with serve_console(
        site, host, chosen, certificate=tls_cert, key=tls_key, names=name or ()
    ) as served:
        if tls_cert is None and not is_loopback(host):
            say("warning: the connection is not encrypted; give --tls-cert and --tls-key")
        stopped = catch_stop_signals()
        if json:
            as_json({"console": served.url, "sign_in": served.sign_in_url()})
            sys.stdout.flush()
        else:
            say(f"the console is at {served.url} (Ctrl-C stops)")
            say("sign in, once, with:")
            print(served.sign_in_url(), flush=True)
        while not stopped:
            time.sleep(_LOOK_EVERY)
    say("stopped")


def _tell_token(token: str) -> None:
    say(f"signed in; the token for the next browser: {token}")
