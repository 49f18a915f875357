"""``calque ledger``: the key of a record is in the user's words."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest

from calque.config import load_settings
from calque.loader.after.expire import lake_of
from calque.loader.commit.tables import open_table
from tests.command import run_command_text

CONFIG = """
[tables."warehouse.sales"]
location = "{folder}/lake/t"

[tables.plain]
location = "{folder}/lake/plain"

[tables.daily]
format = "iceberg"
catalog = "own"
identifier = "shop.sales"

[tables.monthly]
format = "iceberg"
catalog = "own"

[catalogs.own]
type = "sql"
uri = "sqlite:///{folder}/catalog.db"
warehouse = "file://{folder}/warehouse"
"""


def calque(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    url = {"CALQUE_LEDGER_URL": str(folder / "ledger.db")}
    return run_command_text(*arguments, cwd=folder, env={**os.environ, **url, **environment})


def load(folder: Path, table: str, **environment: str) -> int:
    """How many files were loaded."""
    told = calque(folder, "load", "in/", "--into", table, "--json", **environment)
    assert told.returncode == 0, told.stderr
    return int(json.loads(told.stdout)["files_loaded"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stage with a file, and tables with names."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,name\n1,a\n2,b\n")
    (tmp_path / "calque.toml").write_text(CONFIG.format(folder=tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("table", "database", "name"),
    [
        ("warehouse.sales", "warehouse", "sales"),
        ("plain", "default", "plain"),
        ("daily", "shop", "sales"),
        ("monthly", "default", "monthly"),
        ("iceberg:./lake/shop.orders", "shop", "orders"),
        ("lake/by_path", "file://{folder}/lake", "by_path"),
    ],
)
def test_the_database_is_the_users(folder: Path, table: str, database: str, name: str) -> None:
    """Tenant, database and table are as the user or the catalog says; by its key it is found."""
    database = database.format(folder=folder)
    assert load(folder, table, CALQUE_TENANT="acme") == 1
    shown = calque(folder, "ledger", "show", table, CALQUE_TENANT="acme")
    assert f"tenant acme, database {database}, table {name}\n" in shown.stderr
    told = calque(folder, "ledger", "show", table, "--json", CALQUE_TENANT="acme")
    (record,) = json.loads(told.stdout)
    assert (record["tenant"], record["database"], record["table"]) == ("acme", database, name)
    (done,) = json.loads(calque(folder, "history", table, "--json", CALQUE_TENANT="acme").stdout)
    assert (done["database"], done["table"]) == (database, name)
    settings = load_settings(folder / "calque.toml")
    with chdir(folder):
        key = (lake := open_table(table, settings)).key(lake.open())
        found = lake_of(key, settings)
        assert found.key(found.open()) == key


def test_a_table_under_two_names_is_one(folder: Path) -> None:
    """Loaded by its path, then by its name: what was loaded is known, in the words last used."""
    assert load(folder, "lake/t") == 1
    assert load(folder, "warehouse.sales") == 0
    (done,) = json.loads(calque(folder, "history", "lake/t", "--json").stdout)
    assert (done["database"], done["table"]) == ("warehouse", "sales")
    shown = calque(folder, "ledger", "show", "lake/t")
    assert "database warehouse, table sales\n" in shown.stderr
    (record,) = json.loads(calque(folder, "ledger", "show", "lake/t", "--json").stdout)
    assert (record["database"], record["table"]) == ("warehouse", "sales")


def test_tenants_on_one_table(folder: Path) -> None:
    """A file that one tenant loaded is new to another, in one ledger and by the table's log."""
    assert load(folder, "warehouse.sales", CALQUE_TENANT="a") == 1
    assert load(folder, "warehouse.sales", CALQUE_TENANT="b") == 1
    other = str(folder / "other.db")
    assert load(folder, "warehouse.sales", CALQUE_TENANT="c", CALQUE_LEDGER_URL=other) == 1
    for tenant in "abc":
        assert load(folder, "warehouse.sales", CALQUE_TENANT=tenant) == 0
