"""Ledgers of earlier releases are taken over, newer ones refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from calque.errors import ConfigInvalid
from calque.ledger import TableKey, open_ledger
from calque.ledger.history import errors_of, find_load
from calque.ledger.migrate import STEPS
from calque.ledger.purge import pending_purges
from calque.ledger.schema import metadata
from calque.ledger.tables import register_table
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import current_revision, migrate, revisions
from calque.values.row_errors import RowError
from tests.ledger.conftest import KEY
from tests.ledger.filling import identity
from tests.servers.postgres import PostgresServer

OLD = Path(__file__).parent / "old_ledgers"


@pytest.fixture(params=("sqlite", "postgres"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a ledger will live; nothing is there yet."""
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    made = server.database()
    yield made
    server.drop(made)


def engine_of(url: str) -> Engine:
    return create_engine(
        url.replace("postgresql:", "postgresql+psycopg:") if "://" in url else f"sqlite:///{url}"
    )


def make_old(url: str, name: str) -> None:
    """A ledger as the steps of that release made it, with one finished load."""
    engine = engine_of(url)
    script = (OLD / f"{name}.{engine.dialect.name}.sql").read_text()
    with engine.begin() as connection:
        for statement in filter(None, map(str.strip, script.split(";\n"))):
            connection.exec_driver_sql(statement)
        fill(connection)
    engine.dispose()


def fill(connection: Connection) -> None:
    connection.execute(
        text(
            "INSERT INTO calque_tables (tenant, database, name, table_id, location, "
            "checked_version, truncated_version) "
            "VALUES ('default', 'delta', 'file:///lake/t', 'id-1', 'file:///lake/t', 3, -1)"
        )
    )
    connection.execute(
        text(
            "INSERT INTO calque_loads (load_id, table_number, last, state, owner, lease_until, "
            "started_at, base_version, purge, files, rows, errors, bytes) "
            "VALUES ('l1', 1, :yes, 'COMMITTED', 'o', 0, 0, 0, :yes, 1, 3, 0, 10)"
        ),
        {"yes": True},
    )
    connection.execute(
        text(
            "INSERT INTO calque_purges (load_id, location, identity, tries) VALUES (:l, :p, :i, 0)"
        ),
        {"l": "l1", "p": "a.csv", "i": json.dumps(identity("a.csv").to_json())},
    )


@pytest.mark.parametrize(
    ("catalog", "address", "database", "name"),
    [
        ("delta", "s3://lake/shop/sales", "s3://lake/shop", "sales"),
        ("delta", "s3://lake", "default", "s3://lake"),
        ("delta", "file:///t", "default", "file:///t"),
        ("iceberg:/lake", "shop.eu.sales", "shop.eu", "sales"),
        ("iceberg:glue", "default.sales", "default", "sales"),
    ],
)
def test_tables_get_the_users_words(
    url: str, catalog: str, address: str, database: str, name: str
) -> None:
    """A table that was ``delta`` and a location has a database, and is still found by both."""
    make_old(url, "version_4")
    engine = engine_of(url)
    with engine.begin() as connection:
        statement = text("UPDATE calque_tables SET database = :catalog, name = :address")
        connection.execute(statement, {"catalog": catalog, "address": address})
    engine.dispose()
    with open_ledger(url) as ledger:
        told = find_load(ledger, "l1")
        assert (told.database, told.table) == (database, name)
        key = TableKey(catalog, address, "id-1", database="warehouse", name="sales")
        assert register_table(ledger, key).number == 1
        told = find_load(ledger, "l1")
        assert (told.database, told.table) == ("warehouse", "sales")


@pytest.mark.parametrize("name", ["version_1", "version_2_with_archives", "version_4"])
def test_an_old_ledger_is_taken_over(url: str, name: str) -> None:
    """What it knew is known, its tables are those of today, and the next opening does nothing."""
    make_old(url, name)
    for _ in range(2):
        with open_ledger(url) as ledger:
            row = register_table(ledger, KEY)
            assert (row.number, row.checked_version) == (1, 3)
            ((queued,),) = pending_purges(ledger, row)
            assert (queued.load_id, queued.archive, queued.name) == ("l1", None, None)
            told = find_load(ledger, "l1")
            assert (told.rows, told.database, told.table) == (3, "file:///lake", "t")
    assert_schema(url)


def test_a_column_that_came_into_a_step_late(url: str) -> None:
    """Of the fourth version there were two; a ledger of the first of them is whole afterwards."""
    make_old(url, "version_4")
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE calque_files DROP COLUMN metadata"))
    engine.dispose()
    open_ledger(url).close()
    assert_schema(url)


@pytest.mark.parametrize("first", ["at once", "0001"])
def test_a_new_ledger_has_the_schema(url: str, first: str) -> None:
    """Made at once or after all steps, the tables are exactly those that the code describes."""
    if first != "at once":
        engine = engine_of(url)
        STEPS.apply(engine, first)
        engine.dispose()
    open_ledger(url).close()
    assert_schema(url)


def assert_schema(url: str) -> None:
    engine = engine_of(url)
    notes = ("calque_ledger_version", STEPS.note)
    options = {
        "include_name": lambda name, kind, _: kind != "table" or name not in notes,
        "version_table": STEPS.note,
    }
    with engine.connect() as connection:
        assert STEPS.current(connection) == STEPS.revisions[-1]
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        (files,) = inspect(connection).get_foreign_keys("calque_files")
        assert files["referred_table"] == "calque_tables"
    engine.dispose()


def test_errors_of_the_first_version_are_kept(url: str) -> None:
    """A ledger with a row for each error becomes one with a row for each file; none is lost."""
    names = ("load_id", *RowError._fields)
    old = [
        ("L", "a", 3, 2, None, None, None, None, "MALFORMED", "no", 'x"y', None),
        ("L", "a", 2, 1, "n", 4, "int64", "é", "INVALID_VALUE", "no", None, 17),
        ("L", "b", 1, 1, None, None, None, None, "MALFORMED", "no", None, None),
        ("M", "a", 1, 1, None, None, None, None, "MALFORMED", "no", None, None),
    ]
    make_old(url, "version_1")
    engine = engine_of(url)
    fields = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join(f":{name}" for name in names)
    with engine.begin() as connection:
        connection.execute(
            text(f"INSERT INTO calque_errors ({fields}) VALUES ({marks})"),
            [dict(zip(names, row, strict=True)) for row in old],
        )
    engine.dispose()
    with open_ledger(url) as ledger:
        kept = [tuple(error.values()) for error in errors_of(ledger, "L")]
        assert kept == [old[1], old[0], old[2]]
        assert len(list(errors_of(ledger, "M"))) == 1


def test_a_newer_ledger_is_refused(url: str) -> None:
    """A ledger of a later release is left alone; so is one that has lost its note."""
    open_ledger(url).close()
    with open_ledger(url) as ledger, ledger.write() as connection:
        connection.execute(text(f"UPDATE {STEPS.note} SET version_num = '9999'"))
    with pytest.raises(ConfigInvalid, match="9999"):
        open_ledger(url)
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {STEPS.note}"))
    engine.dispose()
    with pytest.raises(ConfigInvalid, match=STEPS.note):
        open_ledger(url)


def test_an_older_calque_refuses_a_ledger_of_today(url: str) -> None:
    """It knows version numbers up to 4, and reads a higher one."""
    open_ledger(url).close()
    engine = engine_of(url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version FROM calque_ledger_version")).scalar() > 4
    engine.dispose()


@pytest.mark.parametrize("name", [None, "version_1"])
def test_several_open_at_once(url: str, name: str | None) -> None:
    """Loaders that start together on a new or an old ledger queue, and all find it whole."""
    if name:
        make_old(url, name)
    failures: list[BaseException] = []

    def start() -> None:
        try:
            open_ledger(url).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert_schema(url)


def test_a_ledger_beside_a_metabase(url: str) -> None:
    """Two schemas in one database note their steps apart."""
    open_ledger(url).close()
    database = Database.open(url if "://" in url else f"sqlite:///{url}")
    migrate(database)
    assert current_revision(database) == revisions()[-1]
    database.close()
    open_ledger(url).close()
