"""``calque store access``: the access grant of a store, whole or narrowed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.output import JsonFlag, as_json

if TYPE_CHECKING:
    from calque.store.uplink.encryption.access import Prefix


def access(
    folder: Annotated[Path, typer.Argument(help="The folder of the store.")],
    prefix: Annotated[
        list[str] | None,
        typer.Argument(help="Only these: bucket, or bucket/folder/ (none: everything)."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Where clients reach the store: grpc://host:port.")
    ] = None,
    read: Annotated[bool, typer.Option(help="Allow downloads.")] = True,
    write: Annotated[bool, typer.Option(help="Allow uploads.")] = True,
    list: Annotated[bool, typer.Option(help="Allow listings.")] = True,
    delete: Annotated[bool, typer.Option(help="Allow deletes and overwrites.")] = True,
    until: Annotated[datetime | None, typer.Option(help="Valid until this time (UTC).")] = None,
    passphrase: Annotated[
        str | None,
        typer.Option(envvar="CALQUE_PASSPHRASE", show_envvar=True, help="Of a store that has one."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Print an access grant. It is a secret: whoever has the line has the access.

    calque store access ./data

    calque store access ./data photos/2026/ --no-write --no-delete --until 2027-01-01
    """
    from calque.store.embedded import EmbeddedStore

    store = EmbeddedStore.open(folder)
    try:
        grant = store.grant(passphrase if store.has_passphrase else None)
    finally:
        store.close()
    prefixes = [_prefix(text) for text in prefix or ()]
    everything = read and write and list and delete and until is None
    if prefixes or not everything:
        grant = grant.restrict(
            *prefixes,
            read=read,
            write=write,
            list=list,
            delete=delete,
            not_after=until,
        )
    text = replace(grant, address=address or grant.address).serialize()
    if json:
        as_json({"access": text})
    else:
        print(text)


def _prefix(text: str) -> Prefix:
    from calque.store.uplink.encryption.access import Prefix

    bucket, _, prefix = text.partition("/")
    return Prefix(bucket, prefix)
