"""``calque store exit``: empty a node, so that it can be taken away."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.flags.upkeep_flags import (
    DryRun,
    Engine,
    Folder,
    Master,
    open_store,
    row_bar,
    scan_options,
)
from calque.cli.output import OK, PARTLY, JsonFlag, as_json, record, say


def exit_(
    folder: Folder,
    node: Annotated[
        str, typer.Argument(help="The beginning of the node's id, or its root, as it was given.")
    ],
    dry_run: DryRun = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Let the node stay, with what it still has.")
    ] = False,
    engine: Engine = "auto",
    master: Master = None,
    json: JsonFlag = False,
) -> None:
    """Move every piece of a node to other nodes; from now on none goes there.

    It can be stopped at any time, and the same command goes on; so does `calque serve`. When it is
    done the node may be switched off. Exit code 3 while pieces are left.

    calque store exit ./data /disk3
    """
    from calque.store.upkeep.exit import cancel_exit, exit_node

    with open_store(folder) as store:
        if cancel:
            stays = cancel_exit(store, node, dry_run=dry_run)
            if json:
                as_json({"node": stays.name, "state": stays.state})
            else:
                say(f"node {stays.name} {'would stay' if dry_run else 'stays'}")
            return
        with row_bar("pieces") as tell:
            report = exit_node(
                store, node, dry_run=dry_run, scan=scan_options(engine, master), tell=tell
            )
    if json:
        as_json(report)
    else:
        record({name: getattr(report, name) for name in report.__slots__})
        if report.no_room:
            say("too few other nodes can take its pieces: calque store add-node, then this again")
    raise typer.Exit(OK if report.is_done or dry_run else PARTLY)
