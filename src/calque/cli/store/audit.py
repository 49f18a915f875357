"""``calque store audit``: do the nodes still have what they took?"""

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
from calque.cli.output import FAILED, OK, JsonFlag, as_json, say, table
from calque.values import count_of


def audit(
    folder: Folder,
    dry_run: DryRun = False,
    slots: Annotated[
        int, typer.Option(min=1, max=10_000, help="Segments that are looked at for each node.")
    ] = 3,
    engine: Engine = "auto",
    master: Master = None,
    json: JsonFlag = False,
) -> None:
    """Read random stripes from the nodes, and check them against their hashes and each other.

    Wrong pieces are queued for repair; a node that often gives wrong ones is failing from then on.
    One that says nothing is asked again three times over a day first. `calque serve` does it once
    an hour. Exit code 1 when a piece is wrong.

    calque store audit ./data --slots 100
    """
    from calque.store.upkeep.audit import audit_store

    with open_store(folder) as store, row_bar("segments") as tell:
        report = audit_store(
            store, slots=slots, dry_run=dry_run, scan=scan_options(engine, master), tell=tell
        )
    if json:
        as_json(report)
    else:
        table(
            ["node", "state", "good", "wrong", "silent"],
            [(e.node, e.state, e.good, e.wrong, e.silent) for e in report.nodes],
        )
        say(f"{count_of(report.segments, 'segment')} looked at, {report.dropped} changed meanwhile")
    raise typer.Exit(FAILED if report.is_alarming else OK)
