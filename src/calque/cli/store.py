"""``calque store``: make a store and buckets, show its access, check it, back it up."""

from __future__ import annotations

import typer

from calque.cli.store_access import access
from calque.cli.store_audit import audit
from calque.cli.store_backup import backup
from calque.cli.store_buckets import buckets
from calque.cli.store_exit import exit_
from calque.cli.store_expire import expire
from calque.cli.store_fsck import fsck
from calque.cli.store_gc import gc
from calque.cli.store_init import init
from calque.cli.store_mkbucket import mkbucket
from calque.cli.store_prefix import copy_prefix, move_prefix
from calque.cli.store_repair import repair
from calque.cli.store_restore import restore
from calque.cli.store_rmbucket import rmbucket
from calque.cli.store_s3_key import app as s3_key
from calque.cli.store_tally import tally

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
app.command()(backup)
app.command()(restore)
app.command("move-prefix")(move_prefix)
app.command("copy-prefix")(copy_prefix)
app.add_typer(s3_key, name="s3-key")


@app.callback()
def store() -> None:
    """Make a store and buckets in it, show its access, check it, back it up."""
