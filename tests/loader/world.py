"""What tests look at after a load: every row of the table, every row of the ledger, every file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
from pyiceberg.table import Table
from sqlalchemy import select

from calque.ledger import open_ledger
from calque.ledger.schema import claims, files, loads
from tests.loader.loader import Place

ROWS = 4


def write_files(stage: Path, count: int, *, first: int = 0) -> list[int]:
    """CSV files with ids that tell where they came from; every id."""
    numbers = range(first, first + count)
    return [one for number in numbers for one in write_file(stage, number)]


def write_file(stage: Path, number: int, *, generation: int = 0) -> list[int]:
    """One of those files, as it is in one of its generations; its ids."""
    stage.mkdir(parents=True, exist_ok=True)
    mine = [number * 100 + generation * ROWS + row for row in range(ROWS)]
    body = "id,name\n" + "".join(f"{one},n{one}\n" for one in mine)
    (stage / f"f{number:05d}.csv").write_text(body)
    return mine


def iceberg(place: Place) -> Table:
    return place.iceberg_table()


def rows(place: Place) -> pa.Table:
    """The table as its own library reads it."""
    if place.kind == "delta":
        return place.delta_table().to_pyarrow_table()
    return place.iceberg_table().scan().to_arrow()


def ids(place: Place) -> Counter[int]:
    return Counter(rows(place).column("id").to_pylist())


def data_files(place: Place) -> set[str]:
    """Names of the data files the table reads."""
    if place.kind == "delta":
        paths = place.delta_table().file_uris()
    else:
        paths = [task.file.file_path for task in place.iceberg_table().scan().plan_files()]
    return {path.rpartition("/")[2] for path in paths}


def files_on_disk(place: Place) -> set[str]:
    """Names of every Parquet file under the table, checkpoints apart."""
    return {
        path.rpartition("/")[2]
        for path in place.files()
        if path.endswith(".parquet") and "_delta_log/" not in path
    }


def assert_settled(place: Place, expected: list[int], *, removed: bool = False) -> None:
    """Each row once, no claim and no open load left, every data file known to the table.

    ``removed``: data files that earlier versions read may lie there too.
    """
    found, wanted = ids(place), Counter(expected)
    assert found == wanted, f"missing {wanted - found}, too many {found - wanted}"
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        assert connection.execute(select(claims)).all() == []
        states = set(connection.execute(select(loads.c.state)).scalars())
        assert states <= {"COMMITTED", "ABORTED"}
        recorded = connection.execute(select(files.c.rows)).scalars().all()
        assert sum(recorded) == len(expected)
    if removed:
        assert data_files(place) < files_on_disk(place)
    else:
        assert files_on_disk(place) == data_files(place)
