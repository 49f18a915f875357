"""What others do to our sources and tables, by the tables' own libraries."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.loader.loader import Place
from tests.loader.world import iceberg


def write_other(path: Path) -> None:
    """Other content in the place of a source."""
    path.write_text("id,name\n7777,new\n")


def append(place: Place, values: list[int]) -> None:
    """Rows by the table's own library."""
    more = pa.table({"id": values, "name": ["other"] * len(values)})
    if place.kind == "delta":
        write_deltalake(str(place.folder / "lake" / "t"), more, mode="append")
    else:
        iceberg(place).append(more)


def remake(place: Place) -> None:
    """Drop the table and make it again, empty."""
    empty = pa.schema([("id", pa.int64()), ("name", pa.string())])
    if place.kind == "delta":
        lake = place.folder / "lake" / "t"
        for path in sorted(lake.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        DeltaTable.create(str(lake), empty)
        return
    table = iceberg(place)
    table.catalog.drop_table(("default", "t"))
    lake = place.folder / "lake" / "again"
    table.catalog.create_table(
        "default.t", empty, location=f"file://{lake}", properties={"commit.retry.num-retries": "0"}
    )


def restore(place: Place, version: int) -> None:
    """Take the table back to an earlier version."""
    if place.kind == "delta":
        DeltaTable(str(place.folder / "lake" / "t")).restore(version)
        return
    table = iceberg(place)
    snapshot = next(one for one in table.snapshots() if one.sequence_number == version)
    table.manage_snapshots().rollback_to_snapshot(snapshot.snapshot_id).commit()


def expire_snapshots(place: Place) -> None:
    """Let an Iceberg table forget every snapshot but the last."""
    table = iceberg(place)
    last = table.current_snapshot()
    assert last is not None
    old = [one.snapshot_id for one in table.snapshots() if one.snapshot_id != last.snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()
