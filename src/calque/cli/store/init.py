"""``calque store init``: make a store in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.output import JsonFlag, as_json, record, say
from calque.errors import ConfigInvalid

if TYPE_CHECKING:
    from calque.store.nodes.erasure import Redundancy


def init(
    folder: Annotated[Path, typer.Argument(help="Where the store goes; made if need be.")],
    pieces: Annotated[
        str,
        typer.Option(help="Pieces needed / pieces made of a segment, for example 4/6."),
    ] = "1/1",
    node: Annotated[
        list[str] | None,
        typer.Option(help="A root for pieces (folder, s3://…), once for each node."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(help="A database URL; without it SQLite in the folder."),
    ] = None,
    passphrase: Annotated[
        str | None,
        typer.Option(
            envvar="CALQUE_PASSPHRASE",
            show_envvar=True,
            help="Derive the key from a passphrase instead of keeping a random one.",
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave a store that is there as it is.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Make a store in a folder: database, nodes and the default access.

    calque store init ./data

    calque store init ./data --pieces 4/6 --node /disk1 --node /disk2 … --node /disk6
    """
    from calque.store.embedded import EmbeddedStore, StoreOptions

    if if_not_exists and EmbeddedStore.exists(folder):
        say(f"there is a store in {folder} already; nothing was changed")
        return
    options = StoreOptions(
        redundancy=_redundancy(pieces),
        nodes=node or (),
        database=database,
        passphrase=passphrase,
    )
    store = EmbeddedStore.create(folder, options)
    try:
        made = {
            "folder": str(store.folder),
            "pieces": pieces,
            "nodes": len(store.description.nodes),
            "passphrase": passphrase is not None,
        }
    finally:
        store.close()
    if json:
        as_json(made)
    else:
        record(made)


def _redundancy(pieces: str) -> Redundancy:
    from calque.store.nodes.erasure import Redundancy

    required, _, total = pieces.partition("/")
    if not (required.isascii() and required.isdigit() and total.isascii() and total.isdigit()):
        raise ConfigInvalid(f"--pieces takes two numbers such as 4/6, not {pieces!r}")
    return Redundancy.of(int(required), int(total))
