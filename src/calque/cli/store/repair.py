"""``calque store repair``: build missing pieces anew."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

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
from calque.cli.output import FAILED, OK, JsonFlag, as_json, record, say, table
from calque.values import count_of

if TYPE_CHECKING:
    from calque.store.upkeep.repair import RepairReport


def repair(
    folder: Folder,
    dry_run: DryRun = False,
    gone: Annotated[
        list[str] | None,
        typer.Option(help="A node that is given up now: the beginning of its id, or its root."),
    ] = None,
    gone_after: Annotated[
        float, typer.Option(min=0, help="Hours of silence after which a node is given up.")
    ] = 24.0,
    engine: Engine = "auto",
    master: Master = None,
    json: JsonFlag = False,
) -> None:
    """Ask every node, find segments with too few pieces, and build the missing ones anew.

    It works on encrypted pieces and needs no passphrase. Safe at any time; `calque serve` does it
    once an hour. Exit code 1 when a segment is lost or cannot be repaired now.

    calque store repair ./data

    calque store repair ./data --gone /disk3
    """
    from calque.store.upkeep.repair import RepairOptions, repair_store

    options = RepairOptions(
        dry_run=dry_run,
        gone=tuple(gone or ()),
        gone_after=timedelta(hours=gone_after),
        scan=scan_options(engine, master),
    )
    with open_store(folder) as store, row_bar("segments") as tell:
        report = repair_store(store, options, tell=tell)
    _show(report, json)
    raise typer.Exit(FAILED if report.is_alarming else OK)


def _show(report: RepairReport, json: bool) -> None:
    if json:
        as_json(report)
        return
    if report.nodes:
        rows = [(each.node, each.state, each.problem) for each in report.nodes]
        table(["node", "state", "problem"], rows)
    shown = asdict(report)
    for name in ("nodes", "lost", "scan", "dry_run"):
        del shown[name]
    record(shown)
    for name in report.lost:
        say(f"lost: segment {name}")
    if report.lost_segments:
        say(
            f"too few pieces are left of {count_of(report.lost_segments, 'segment')} of "
            f"{count_of(report.lost_objects, 'object')}: bring a node of theirs back"
        )
    if report.no_room:
        waiting = count_of(report.no_room, "segment")
        say(f"{waiting} waiting for room on other nodes: calque store add-node")
