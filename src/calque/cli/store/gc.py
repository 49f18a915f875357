"""``calque store gc``: take away pieces that no segment names."""

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
from calque.cli.output import OK, PARTLY, JsonFlag, as_json, say, size, table

if TYPE_CHECKING:
    from calque.store.upkeep.gc import GcReport, NodeRestored


def gc(
    folder: Folder,
    dry_run: DryRun = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="Bring back what is in the trash of the nodes.")
    ] = False,
    many: Annotated[
        bool, typer.Option("--many", help="Take pieces away even where most of a node would go.")
    ] = False,
    window: Annotated[
        float,
        typer.Option(
            min=0,
            help="Hours that a piece must be older than the snapshot of the rows. With fewer than "
            "24 an upload that is under way may lose its pieces to the trash.",
        ),
    ] = 72.0,
    empty_after: Annotated[
        float, typer.Option(min=0, help="Days that a piece stays in the trash.")
    ] = 7.0,
    engine: Engine = "auto",
    master: Master = None,
    json: JsonFlag = False,
) -> None:
    """Take away pieces that no segment names: killed uploads leave them, and nodes that were away.

    They go to the trash of their node first and are deleted after a week; `--restore` brings them
    back. Pieces of the last 72 hours stay, an upload may be under way. Safe at any time; `calque
    serve` does it once a day. Exit code 3 when a node could not be collected.

    calque store gc ./data --dry-run

    calque store gc ./data
    """
    from calque.store.upkeep.gc import GcOptions, collect_store, restore_garbage

    with open_store(folder) as store:
        if restore:
            _show_restored(restore_garbage(store, dry_run=dry_run), json)
            return
        options = GcOptions(
            dry_run=dry_run,
            many=many,
            window=timedelta(hours=window),
            empty_after=timedelta(days=empty_after),
            scan=scan_options(engine, master),
        )
        with row_bar("segments") as tell:
            report = collect_store(store, options, tell=tell)
    _show(report, json)
    raise typer.Exit(PARTLY if any(each.error for each in report.nodes) else OK)


def _show(report: GcReport, json: bool) -> None:
    if json:
        as_json({**asdict(report), "trashed": report.trashed})
        return
    table(
        ["node", "kept", "young", "trashed", "bytes", "emptied", "filter", "error"],
        [
            (
                each.node, each.kept, each.young, each.trashed, size(each.trashed_bytes),
                each.emptied, size(each.filter_bytes), each.error,
            )
            for each in report.nodes
        ],
    )  # fmt: skip
    scan = report.scan
    would = "would go" if report.dry_run else "went"
    say(
        f"{report.trashed} pieces {would} to the trash; {scan.rows} segments in {scan.ranges} "
        f"ranges of snapshot {scan.snapshot}, {scan.seconds:.1f} s ({scan.engine})"
    )


def _show_restored(restored: list[NodeRestored], json: bool) -> None:
    if json:
        as_json(restored)
    else:
        table(["node", "restored", "error"], [(e.node, e.restored, e.error) for e in restored])
    raise typer.Exit(PARTLY if any(each.error for each in restored) else OK)
