"""The console side of ``calque serve``: the pages of the store, and of the configured ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from calque.cli.output import say
from calque.config import load_settings
from calque.console.ledger_pages.section import ledger_section
from calque.console.server import PORT, ServedConsole, is_free, serve_console
from calque.console.site import Site
from calque.console.store_pages.object import S3Door
from calque.console.store_pages.section import store_section
from calque.console.text import shell_line
from calque.ledger.configured import environment_of, existing_ledger_of
from calque.store.embedded import EmbeddedStore
from calque.store.metainfo.tls import ServerCertificate
from calque.store.uplink.grant import AccessGrant


@contextmanager
def serve_pages(
    store: EmbeddedStore,
    host: str,
    port: int | None,
    *,
    passphrase: str | None,
    door: S3Door | None,
    tls: ServerCertificate | None,
    names: Sequence[str] = (),
) -> Iterator[ServedConsole]:
    """Serve the console for the length of a ``with`` block; without a port one that is free."""
    settings = load_settings()
    site = Site(
        [
            store_section(store, _grant(store, passphrase), door),
            ledger_section(lambda: existing_ledger_of(settings), environment_of(settings)),
        ],
        announce=tell_token,
        command=shell_line("calque", "serve", str(store.folder)),
    )
    chosen = port if port is not None else (PORT if is_free(host, PORT) else 0)
    certificate = (None, None) if tls is None else (tls.certificate, tls.key)
    with serve_console(
        site, host, chosen, certificate=certificate[0], key=certificate[1], names=names
    ) as served:
        yield served


def tell_token(token: str) -> None:
    """After each sign-in: the next browser needs another one."""
    say(f"console: signed in; the token for the next browser: {token}")


def _grant(store: EmbeddedStore, passphrase: str | None) -> AccessGrant | None:
    if store.has_passphrase and not passphrase:
        say("the console shows no objects: the store has a passphrase (CALQUE_PASSPHRASE)")
        return None
    return store.grant(passphrase if store.has_passphrase else None)
