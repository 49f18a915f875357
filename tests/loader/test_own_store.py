"""Loads in calque's own store: stage, table, archive and copied Parquet, all in one project."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import calque
from calque.config import Settings, TableSettings
from calque.errors import ConditionNotMatch, Unsupported
from calque.loader.commit.tables import open_table
from calque.loader.commit.tables.base import Change, Mark
from calque.operator import Operator
from calque.store.open_project import open_project
from calque.values import MIB
from tests.command import run_command

TABLE = "calque://lake/shop/sales"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three buckets, named by the environment; the ledger lies beside it."""
    folder = tmp_path / "own & store"
    with open_project(folder) as opened:
        for bucket in ("stage", "lake", "old"):
            opened.create_bucket(bucket)
    monkeypatch.setenv("CALQUE_PROJECT", str(folder))
    monkeypatch.setenv("CALQUE_LEDGER_URL", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


def put(uri: str, data: bytes) -> None:
    operator, path = Operator.locate(uri)
    operator.write(path, data)
    operator.close()


def names(uri: str) -> list[str]:
    operator, path = Operator.locate(uri)
    found = [one.path.removeprefix(path) for one in operator.list(path)]
    operator.close()
    return found


def table_rows(folder: Path) -> pa.Table:
    """The table as deltalake reads it, from a copy of its folder."""
    operator, path = Operator.locate(TABLE + "/")
    for one in operator.list(path):
        target = folder / one.path.removeprefix(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(operator.read(one.path))
    operator.close()
    return DeltaTable(str(folder)).to_pyarrow_table()


def ids(folder: Path) -> Counter[int]:
    return Counter(table_rows(folder).column("id").to_pylist())


@pytest.mark.parametrize("engine", ["local", "local[2]"])
def test_everything_in_the_store(project: Path, tmp_path: Path, engine: str) -> None:
    """Each file once, from a stage into a table and then into an archive, all in one project."""
    for number in range(3):
        put(f"calque://stage/in/{number}.csv", b"id,name\n%d,x\n" % number)
    options: dict[str, Any] = {"spark": engine, "archive": "calque://old/done/"}
    report = calque.load("calque://stage/in/", into=TABLE, **options)
    assert (report.rows_loaded, report.archived) == (3, 3)
    assert names("calque://stage/in/") == []
    assert names("calque://old/done/") == ["0.csv", "1.csv", "2.csv"]
    put("calque://stage/in/9.csv", b"id,name\n9,y\n")
    assert calque.load("calque://stage/in/*.csv", into=TABLE, **options).rows_loaded == 1
    assert calque.load("calque://stage/in/", into=TABLE, **options).rows_loaded == 0
    assert ids(tmp_path / "copy") == Counter([0, 1, 2, 9])


def test_nothing_twice(project: Path, tmp_path: Path) -> None:
    """Staged files that stay are known again, also where one name begins with another."""
    for name in ("a", "a.b", "a-b", "a0", "a/b"):
        put(f"calque://stage/in/{name}.csv", b"id,name\n1,x\n")
    found = [calque.load("calque://stage/in/", into=TABLE).rows_loaded for _ in range(3)]
    assert found == [5, 0, 0]
    assert ids(tmp_path / "copy") == Counter({1: 5})


def test_two_projects_do_not_meet(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same name and bytes in another project are another file."""
    table = str(tmp_path / "table")
    put("calque://stage/in/a.csv", b"id,name\n1,x\n")
    assert calque.load("calque://stage/in/", into=table).rows_loaded == 1
    with open_project(tmp_path / "other") as opened:
        opened.create_bucket("stage")
    monkeypatch.setenv("CALQUE_PROJECT", str(tmp_path / "other"))
    put("calque://stage/in/a.csv", b"id,name\n1,x\n")
    assert calque.load("calque://stage/in/", into=table).rows_loaded == 1
    assert DeltaTable(table).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("engine", ["local", "local[2]"])
def test_fitting_parquet_is_copied(project: Path, tmp_path: Path, engine: str) -> None:
    """A file that fits is loaded by a copy in the store, which moves no byte of it."""
    rows = 200_000
    table = pa.table({"id": range(rows), "name": [f"n{one * 7919}" for one in range(rows)]})
    local = tmp_path / "big.parquet"
    pq.write_table(table, local, compression="none", use_dictionary=False)
    assert local.stat().st_size > MIB
    put("calque://stage/in/big.parquet", local.read_bytes())
    report = calque.load("calque://stage/in/", into=TABLE, spark=engine)
    assert report.rows_loaded == rows
    operator, path = Operator.locate(TABLE + "/")
    (data,) = [one for one in operator.list(path) if one.path.endswith(".parquet")]
    assert operator.read(data.path) == local.read_bytes()
    operator.close()
    put("calque://stage/in/big.parquet", local.read_bytes())  # another etag, the same bytes
    assert calque.load("calque://stage/in/", into=TABLE, spark=engine).rows_loaded == 0
    assert ids(tmp_path / "copy") == Counter(range(rows))


def test_by_the_command(project: Path, tmp_path: Path) -> None:
    """``calque load`` and ``calque sql`` reach the same stage and table."""
    put("calque://stage/in/1.csv", b"id,name\n1,x\n")
    loaded = command("load", "calque://stage/in/", "--into", TABLE, "--json")
    assert loaded["rows_loaded"] == 1
    put("calque://stage/in/2.csv", b"id,name\n2,x\n")
    text = (
        f"COPY INTO '{TABLE}' FROM (SELECT id::BIGINT * 10, upper(name) FROM 'calque://stage/in/') "
        "FILE_FORMAT = (TYPE = CSV PARSE_HEADER = TRUE) PURGE = TRUE"
    )
    assert command("sql", text, "--json")["rows_loaded"] == 1
    assert ids(tmp_path / "copy") == Counter([1, 20])


def command(*arguments: str) -> dict[str, Any]:
    done = run_command(*arguments)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_changes_of_the_table(project: Path, tmp_path: Path) -> None:
    """Replaced files, new columns and truncation reach the log of a table in the store."""
    put("calque://stage/in/1.csv", b"id,name\n1,x\n")
    put("calque://stage/in/2.csv", b"id,name\n2,x\n")
    calque.load("calque://stage/in/", into=TABLE)
    put("calque://stage/in/2.csv", b"id,name,more\n3,x,y\n")
    report = calque.load("calque://stage/in/", into=TABLE, evolve=True, on_changed="replace")
    assert report.rows_loaded == 1
    found = table_rows(tmp_path / "copy")
    assert sorted(found.column("id").to_pylist()) == [1, 3]
    assert found.column_names == ["id", "name", "more"]
    calque.sql(f"TRUNCATE TABLE '{TABLE}'")
    assert calque.load("calque://stage/in/", into=TABLE).rows_loaded == 2
    assert ids(tmp_path / "again") == Counter([1, 3])


def test_a_commit_is_a_compare_and_set(project: Path) -> None:
    """Of two commits on one version one wins; the other changes nothing and can look again."""
    put("calque://stage/in/1.csv", b"id,name\n1,x\n")
    calque.load("calque://stage/in/", into=TABLE)
    lakes = [open_table(TABLE, Settings()) for _ in range(2)]
    first, second = (lake.open() for lake in lakes)
    assert first.commit(Change(load_id="one", mark=Mark.ABORTED)) == first.version + 1
    for _ in range(2):
        with pytest.raises(ConditionNotMatch):
            second.commit(Change(load_id="two", mark=Mark.ABORTED))
    again = lakes[1].open()
    assert again.marker("one", 0) is not None
    assert again.marker("two", 0) is None
    again.commit(Change(load_id="two", mark=Mark.ABORTED))
    assert lakes[0].open().marker("two", 0) is not None


def test_a_long_log(project: Path, tmp_path: Path) -> None:
    """Checkpoints that the library writes are kept beside the log, and the log is read by them."""
    put("calque://stage/in/1.csv", b"id,name\n1,x\n")
    calque.load("calque://stage/in/", into=TABLE)
    lake = open_table(TABLE, Settings())
    for number in range(205):
        lake.open().commit(Change(load_id=f"n{number}", mark=Mark.ABORTED))
    log = names(TABLE + "/_delta_log/")
    assert "_last_checkpoint" in log
    assert len([name for name in log if name.endswith(".checkpoint.parquet")]) == 2
    operator, path = Operator.locate(TABLE + "/_delta_log/_last_checkpoint")
    assert json.loads(operator.read(path))["version"] > 150
    operator.close()
    fresh = open_table(TABLE, Settings()).open()
    assert fresh.marker("n0", 0) is not None
    assert ids(tmp_path / "copy") == Counter([1])


def test_iceberg_in_the_store_is_refused_clearly(project: Path, tmp_path: Path) -> None:
    """Its library cannot reach the store: the error says so and what to do; nothing is made."""
    put("calque://stage/in/1.csv", b"id,name\n1,x\n")
    catalogs = {
        "local": {"type": "sql", "uri": f"sqlite:///{tmp_path}/a.db", "warehouse": "file:///x"},
        "own": {"type": "sql", "uri": f"sqlite:///{tmp_path}/b.db", "warehouse": "calque://lake/"},
    }
    tables = {
        "by.location": TableSettings("calque://lake/i", "iceberg", "local"),
        "by.warehouse": TableSettings(None, "iceberg", "own"),
        "embedded": TableSettings("calque://lake/i", "iceberg"),
    }
    settings = Settings(catalogs=catalogs, tables=tables)
    for name in (*tables, "iceberg:calque://lake/i"):
        with pytest.raises(Unsupported, match="cannot live at calque://") as caught:
            calque.load("calque://stage/in/", into=name, settings=settings)
        assert "Delta" in (caught.value.hint or "")
    assert names("calque://lake/") == []
    assert not (tmp_path / "a.db").exists()
