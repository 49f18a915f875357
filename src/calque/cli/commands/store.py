"""``calque store``: make a store and buckets, show its access, check it, back it up."""

from __future__ import annotations

import typer

from calque.cli.store.access import access
from calque.cli.store.add_node import add_node
from calque.cli.store.audit import audit
from calque.cli.store.backup import backup
from calque.cli.store.buckets import buckets
from calque.cli.store.exit import exit_
from calque.cli.store.expire import expire
from calque.cli.store.fsck import fsck
from calque.cli.store.gc import gc
from calque.cli.store.init import init
from calque.cli.store.mkbucket import mkbucket
from calque.cli.store.prefix import copy_prefix, move_prefix
from calque.cli.store.repair import repair
from calque.cli.store.restore import restore
from calque.cli.store.rmbucket import rmbucket
from calque.cli.store.s3_key import app as s3_key
from calque.cli.store.tally import tally

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode="markdown")
app.command()(init)
app.command()(mkbucket)
app.command()(buckets)
app.command()(rmbucket)
app.command()(access)
app.command()(expire)
app.command()(gc)
app.command()(audit)
app.command()(repair)
app.command("exit")(exit_)
app.command()(tally)
app.command()(fsck)
app.command("add-node")(add_node)
app.command()(backup)
app.command()(restore)
app.command("move-prefix")(move_prefix)
app.command("copy-prefix")(copy_prefix)
app.add_typer(s3_key, name="s3-key")


@app.callback()
def store() -> None:
    """Make a store and buckets in it, show its access, check it, back it up."""
