"""`calque show` and `calque tables`: tables of both kinds, by every kind of name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

import calque as package
from tests.cli.conftest import Calque

NAMES = {"delta": "lake/sales", "iceberg": "iceberg:lake/shop.sales"}


@pytest.fixture
def loaded(calque_here: Calque, folder: Path) -> Path:
    """A table of each kind with three rows, and a calque.toml that names them."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text(
        "id,name,day\n1,a,2026-01-01\n2,,2026-01-02\n3,c,2026-01-03\n"
    )
    (folder / "calque.toml").write_text(
        f'[tables."warehouse.sales"]\nlocation = "{folder}/lake/sales"\n'
        f'[tables."warehouse.orders"]\nformat = "iceberg"\nlocation = "{folder}/lake/shop.sales"\n'
    )
    for name in NAMES.values():
        done = calque_here("load", "in/", "--into", name, "-q")
        assert done.returncode == 0, done.stderr
    return folder


def test_both_kinds_by_path_and_by_name(calque_here: Calque, loaded: Path) -> None:
    """Schema, rows, version and first rows, the same by a path and by a name of calque.toml."""
    for kind, path in NAMES.items():
        configured = {"delta": "warehouse.sales", "iceberg": "warehouse.orders"}[kind]
        by_path = json.loads(calque_here("show", path, "--json").stdout)
        by_name = json.loads(calque_here("show", configured, "--json").stdout)
        assert {**by_path, "name": ""} == {**by_name, "name": ""}
        assert (by_path["format"], by_path["rows"], by_path["version"]) == (kind, 3, 1)
        assert [one["type"] for one in by_path["columns"]] == ["BIGINT", "TEXT", "DATE"]
        assert by_path["first_rows"][1] == {"id": 2, "name": "", "day": "2026-01-02"}
        done = calque_here("show", path, "--rows", 1)
        assert "rows      3\n" in done.stdout
        assert done.stdout.rstrip().endswith("1\ta\t2026-01-01")


def test_what_is_not_there_is_not_made(calque_here: Calque, folder: Path) -> None:
    """A wrong name is an error, and looking makes no catalog, no folder, no ledger."""
    for command in ("show", "history"):
        for name in ("lake/none", "iceberg:lake/none", "iceberg:lake/x/none"):
            done = calque_here(command, name)
            assert done.returncode == 1, done.stderr
            assert "Traceback" not in done.stderr
    assert not (folder / "lake").exists()
    assert calque_here("tables").returncode == 0
    assert not (folder.parent / "state").exists()


def test_a_table_that_cannot_be_loaded_is_shown(calque_here: Calque, folder: Path) -> None:
    """With a note that says why loads are refused."""
    write_deltalake(folder / "t", pa.table({"id": [1]}))
    DeltaTable(folder / "t").alter.add_constraint({"positive": "id > 0"})
    told = json.loads(calque_here("show", "./t", "--json").stdout)
    assert told["first_rows"] == [{"id": 1}]
    assert "delta.constraints.positive" in told["notes"][0]


def test_partitions_and_grown_columns(calque_here: Calque, folder: Path) -> None:
    """Partition values, also odd ones, and columns that old files do not have."""
    rows = {"id": [1, 2], "p": ["ü/1 x", None]}
    write_deltalake(folder / "t", pa.table(rows), partition_by=["p"])
    write_deltalake(
        folder / "t", pa.table({"id": [3], "p": ["z"], "n": [1.5]}), mode="append",
        schema_mode="merge",
    )  # fmt: skip
    told = json.loads(calque_here("show", "./t", "--json").stdout)
    assert told["partition_by"] == ["p"]
    assert sorted((one["id"], one["p"], one["n"]) for one in told["first_rows"]) == [
        (1, "ü/1 x", None), (2, None, None), (3, "z", 1.5),
    ]  # fmt: skip


def test_values_beyond_python(calque_here: Calque, folder: Path) -> None:
    """Times after the year 9999, NaN, bytes and nested values can be shown, as JSON too."""
    table = pa.table(
        {
            "at": pa.array([300_000_000_000_000_000], pa.timestamp("us")),
            "x": [float("nan")],
            "raw": [b"\xff"],
            "list": [[{"a": b"x"}]],
        }
    )
    write_deltalake(folder / "t", table)
    done = calque_here("show", "./t", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["first_rows"]
    assert (row["x"], row["raw"], row["list"]) == ("nan", "/w==", [{"a": "eA=="}])
    assert row["at"].startswith("11476")
    assert "11476" in calque_here("show", "./t").stdout


def test_tables_of_config_and_ledger(calque_here: Calque, loaded: Path) -> None:
    """Each table once: under its name of calque.toml, with its loads; others by their place."""
    calque_here("load", "in/", "--into", "lake/other", "-q")
    found = json.loads(calque_here("tables", "--json").stdout)["tables"]
    assert [(one["name"], one["known_from"], one["rows_loaded"]) for one in found] == [
        (f"{loaded}/lake/other", "ledger", 3),
        ("warehouse.orders", "calque.toml", 3),
        ("warehouse.sales", "calque.toml", 3),
    ]
    assert "warehouse.sales\tdelta\t" in calque_here("tables").stdout
    for one in found:
        assert calque_here("show", one["name"]).returncode == 0
    (loaded / "calque.toml").unlink()
    found = json.loads(calque_here("tables", "--json").stdout)["tables"]
    assert f"iceberg:{loaded}/lake/shop.sales" in [one["name"] for one in found]


def test_tables_of_a_catalog(calque_here: Calque, folder: Path) -> None:
    """Those that the catalog knows are listed; one that does not answer is told, exit code 3."""
    uri = f"sqlite:///{folder}/cat.db"
    catalog = SqlCatalog("prod", uri=uri, warehouse=f"file://{folder}/w")
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    (folder / "calque.toml").write_text(
        f'[catalogs.prod]\ntype = "sql"\nuri = "{uri}"\nwarehouse = "file://{folder}/w"\n'
    )
    done = calque_here("tables", "--json")
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["tables"]
    assert (one["name"], one["known_from"]) == ("shop.orders", "catalog prod")
    with (folder / "calque.toml").open("a") as file:
        file.write('[catalogs.away]\ntype = "rest"\nuri = "http://127.0.0.1:9"\n')
    done = calque_here("tables")
    assert done.returncode == 3
    assert "the catalog away cannot be asked" in done.stderr
    assert "shop.orders" in done.stdout


def test_a_table_in_the_own_store(
    calque_here: Calque, folder: Path, environment: dict[str, str]
) -> None:
    """Its library does not know the store, and its rows are shown all the same."""
    with package.open_project(folder / "store") as project:
        project.create_bucket("lake")
    environment["CALQUE_PROJECT"] = str(folder / "store")
    (folder / "a.csv").write_text("id\n7\n8\n")
    done = calque_here("load", "a.csv", "--into", "calque://lake/t", "--header", "-q")
    assert done.returncode == 0, done.stderr
    told = json.loads(calque_here("show", "calque://lake/t", "--rows", 1, "--json").stdout)
    assert (told["rows"], told["first_rows"]) == (2, [{"id": 7}])
