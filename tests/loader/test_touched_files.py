"""A file that was touched, or written again with the same bytes, is not loaded again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from calque.loader.model.file_formats import ParquetFormat
from calque.loader.model.outcome import Status
from calque.loader.run.writing.copy_parquet import SMALLEST_COPIED
from tests.loader.loader import Place

ROWS = 120_000
HOUR = 3600


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"{one:09d}" for one in ids]})


def write_large(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, compression="none", use_dictionary=False)
    assert path.stat().st_size >= SMALLEST_COPIED


def write_small(path: Path, table: pa.Table) -> None:
    pq.write_table(table.slice(0, 100), path)


def write_orc(path: Path, table: pa.Table) -> None:
    orc.write_table(table.slice(0, 1000), path)


CASES: list[Any] = [
    pytest.param("a.parquet", write_large, {}, id="copied"),
    pytest.param("a.parquet", write_large, {"copy": False}, id="decoded"),
    pytest.param("a.parquet", write_small, {}, id="small"),
    pytest.param("a.orc", write_orc, {}, id="orc"),
]
each_case = pytest.mark.parametrize(("name", "write", "how"), CASES)


def put(place: Place, name: str, write: Callable[[Path, pa.Table], None], table: pa.Table) -> Path:
    """Write a staged file, old enough that its time is to be believed."""
    place.stage.mkdir(exist_ok=True)
    path = place.stage / name
    write(path, table)
    set_age(path, HOUR)
    return path


def set_age(path: Path, seconds: int) -> None:
    before = path.stat().st_mtime - seconds
    os.utime(path, (before, before))


def options(how: dict[str, Any]) -> dict[str, Any]:
    return {} if how.get("copy", True) else {"format": ParquetFormat(copy_if_fits=False)}


@each_case
def test_touched(
    place: Place, name: str, write: Callable[[Path, pa.Table], None], how: dict[str, Any]
) -> None:
    """Nothing is loaded, and the record has the file's new time, so that it is asked but once."""
    path = put(place, name, write, rows())
    assert place.load(**options(how)).files_loaded == 1
    set_age(path, HOUR)
    report = place.load(**options(how))
    assert [one.status for one in report.files] == [Status.SKIPPED_LOADED]
    assert [one.message for one in report.files] == ["touched, but its content is the same"]
    (again,) = place.load(**options(how)).files
    assert (again.status, "touched" in str(again.message)) == (Status.SKIPPED_LOADED, False)


@pytest.mark.parametrize("how", [{}, {"copy": False}], ids=["copied", "decoded"])
def test_changed(place: Place, how: dict[str, Any]) -> None:
    """Other bytes of the same length are loaded."""
    path = put(place, "a.parquet", write_large, rows())
    size = path.stat().st_size
    assert place.load(**options(how)).files_loaded == 1
    write_large(path, rows(1))
    assert path.stat().st_size == size
    set_age(path, 2 * HOUR)
    assert place.load(**options(how)).files_loaded == 1


def test_a_copy_that_is_gone(delta: Place) -> None:
    """Without the data file that a file was copied to nothing tells its bytes: it has changed."""
    path = put(delta, "a.parquet", write_large, rows())
    delta.load()
    table = DeltaTable(delta.table)
    table.optimize.z_order(["id"])
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    set_age(path, HOUR)
    assert delta.load(on_changed="skip").count(Status.CHANGED) == 1


def test_known_to_another_ledger(place: Place) -> None:
    """A ledger that learns of a copied file from the table compares it as well."""
    path = put(place, "a.parquet", write_large, rows())
    place.load()
    set_age(path, HOUR)
    other = replace(place, ledger=str(place.folder / "other.db"))
    assert other.load().count(Status.SKIPPED_LOADED) == 1
