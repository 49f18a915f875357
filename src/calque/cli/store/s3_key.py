"""``calque store s3-key``: keys for clients that speak S3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer._click.core import Context
from typer.core import TyperGroup

from calque.cli.output import JsonFlag, as_json, say, table

if TYPE_CHECKING:
    from calque.store.embedded import EmbeddedStore
    from calque.store.uplink.encryption.access import Prefix


class _MakeByDefault(TyperGroup):
    """``calque store s3-key ./data`` makes a key: the folder needs no word before it."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_MakeByDefault, add_completion=False, no_args_is_help=True, rich_markup_mode="markdown"
)

Folder = Annotated[Path, typer.Argument(help="The folder of the store.")]
Passphrase = Annotated[
    str | None,
    typer.Option(envvar="CALQUE_PASSPHRASE", show_envvar=True, help="Of a store that has one."),
]


@app.callback()
def s3_key() -> None:
    """Make, list and revoke keys for clients that speak S3.

    calque store s3-key ./data

    calque store s3-key ./data --prefix photos/2026/ --no-write --no-delete --until 2027-01-01
    """


@app.command()
def make(
    folder: Folder,
    prefix: Annotated[
        list[str] | None,
        typer.Option(help="Only this: bucket, or bucket/folder/; may be given several times."),
    ] = None,
    read: Annotated[bool, typer.Option(help="Allow downloads.")] = True,
    write: Annotated[bool, typer.Option(help="Allow uploads.")] = True,
    list: Annotated[bool, typer.Option(help="Allow listings.")] = True,
    delete: Annotated[bool, typer.Option(help="Allow deletes and overwrites.")] = True,
    until: Annotated[datetime | None, typer.Option(help="Valid until this time (UTC).")] = None,
    name: Annotated[str, typer.Option(help="What the key is for, shown by list.")] = "",
    passphrase: Passphrase = None,
    json: JsonFlag = False,
) -> None:
    """Make a key; its id and secret are shown this once.

    They are printed as variables of a shell: `export $(calque store s3-key ./data)`.
    """
    from calque.gateway.keys import AccessKeys, Limits
    from calque.store.metainfo.timestamps import as_utc

    prefixes = tuple(_prefix(text) for text in prefix or ())
    limits = Limits(
        prefixes=prefixes,
        read=read,
        write=write,
        list=list,
        delete=delete,
        until=as_utc(until) if until else None,
    )
    with _opened(folder) as store:
        grant = store.grant(passphrase if store.has_passphrase else None)
        made = AccessKeys(store.endpoint.database).make(grant, limits, name=name)
    if json:
        as_json(asdict(made))
        return
    say(f"an S3 key with the fingerprint {made.fingerprint}, shown this once:")
    print(f"AWS_ACCESS_KEY_ID={made.access_key_id}")
    print(f"AWS_SECRET_ACCESS_KEY={made.secret_access_key}")


@app.command("list")
def list_(folder: Folder, passphrase: Passphrase = None, json: JsonFlag = False) -> None:
    """The keys by their fingerprints: what each may do, and since when."""
    from calque.gateway.keys import AccessKeys

    with _opened(folder) as store:
        grant = store.grant(passphrase if store.has_passphrase else None)
        found = [*AccessKeys(store.endpoint.database).list(grant)]
    if json:
        as_json([asdict(each) for each in found])
        return
    table(
        ["fingerprint", "created", "name", "prefixes", "may", "until"],
        [
            (
                each.fingerprint,
                each.created,
                each.name,
                " ".join(each.prefixes),
                each.may,
                each.until,
            )
            for each in found
        ],
    )


@app.command()
def revoke(
    folder: Folder,
    key: Annotated[
        str, typer.Argument(help="The access key id, or 8 or more digits of its fingerprint.")
    ],
    json: JsonFlag = False,
) -> None:
    """Refuse a key: within a second, wherever the store is served."""
    from calque.gateway.keys import AccessKeys

    with _opened(folder) as store:
        revoked = AccessKeys(store.endpoint.database).revoke(key)
    if json:
        as_json({"revoked": revoked})
    else:
        say(f"revoked {revoked}")


@contextmanager
def _opened(folder: Path) -> Iterator[EmbeddedStore]:
    from calque.store.embedded import EmbeddedStore

    store = EmbeddedStore.open(folder)
    try:
        yield store
    finally:
        store.close()


def _prefix(text: str) -> Prefix:
    from calque.store.uplink.encryption.access import Prefix

    bucket, _, prefix = text.partition("/")
    return Prefix(bucket, prefix)
