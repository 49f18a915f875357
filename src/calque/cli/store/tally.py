"""``calque store tally``: how much is stored, and how much copies save."""

from __future__ import annotations

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
from calque.cli.output import JsonFlag, as_json, record, size, table

if TYPE_CHECKING:
    from calque.store.upkeep.tally import TallyReport


def tally(
    folder: Folder,
    dry_run: DryRun = False,
    history: Annotated[
        int | None, typer.Option(min=1, help="Show the recorded usage of so many days instead.")
    ] = None,
    engine: Engine = "auto",
    master: Master = None,
    json: JsonFlag = False,
) -> None:
    """Count objects and bytes by bucket, pieces by node, and what copies save.

    Logical bytes count copies in full; physical bytes are what is really kept, before redundancy.
    Each run is recorded as the usage of its hour; `calque serve` does it every hour.

    calque store tally ./data

    calque store tally ./data --history 7
    """
    from calque.store.metabase.model.records import moment
    from calque.store.metabase.upkeep.usage_history import read_usage
    from calque.store.upkeep.tally import tally_store

    with open_store(folder) as store:
        if history is not None:
            database = store.endpoint.database
            now = database.clock()
            since = now - int(timedelta(days=history).total_seconds() * 1_000_000)
            rows = read_usage(database, "store", since, now)
            shown = [
                {**row._asdict(), "recorded_at": moment(row.recorded_at).isoformat()}
                for row in rows
            ]
            as_json(shown) if json else table(
                list(shown[0]) if shown else ["recorded_at"], [list(row.values()) for row in shown]
            )
            return
        with row_bar("segments") as tell:
            report = tally_store(
                store, dry_run=dry_run, scan=scan_options(engine, master), tell=tell
            )
    as_json(report) if json else _show(report)


def _show(report: TallyReport) -> None:
    table(
        ["project", "bucket", "objects", "segments", "logical"],
        [
            (each.project[:12], each.bucket, each.objects, each.segments, size(each.logical_bytes))
            for each in report.buckets
        ],
    )
    table(
        ["node", "pieces", "bytes"],
        [(each.node[:12], each.pieces, size(each.bytes)) for each in report.nodes],
    )
    record(
        {
            name.removesuffix("_bytes"): size(getattr(report, name))
            for name in (
                "logical_bytes", "physical_bytes", "saved_bytes", "pending_bytes", "outlived_bytes",
                "node_bytes",
            )
        }
    )  # fmt: skip
