"""Steps of a schema: in order, once, all or none, and in folders of any name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect, text

from calque.databases.schema_steps import SchemaSteps
from calque.databases.sqlite import open_sqlite
from calque.errors import ConfigInvalid
from calque.ledger.migrate import STEPS as LEDGER
from calque.store.metabase.engine.migrate import STEPS as METABASE
from tests.servers.postgres import PostgresServer

STEP = """
from alembic import op

revision = "{number}"
down_revision = {before!r}


def upgrade():
    op.execute("CREATE TABLE made_by_{number} (x INTEGER)")
    {then}
"""


def write_steps(folder: Path, last: str = "pass") -> SchemaSteps:
    folder.mkdir()
    (folder / "0001_a.py").write_text(STEP.format(number="0001", before=None, then="pass"))
    (folder / "0002_b.py").write_text(STEP.format(number="0002", before="0001", then=last))
    return SchemaSteps(what="it", folder=folder, note="notes", lock=1, refusal=ConfigInvalid)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return open_sqlite(tmp_path / "x.db", create=True, busy_seconds=5)


def made(engine: Engine) -> set[str]:
    return {name for name in inspect(engine).get_table_names() if name.startswith("made_by")}


def test_steps_are_taken_in_order_and_once(tmp_path: Path, engine: Engine) -> None:
    """Up to the one that was asked for, then the rest; a folder's name may hold anything."""
    steps = write_steps(tmp_path / "100% odd, name: x;y")
    steps.apply(engine, "0001")
    assert made(engine) == {"made_by_0001"}
    for _ in range(2):
        steps.apply(engine)
        assert made(engine) == {"made_by_0001", "made_by_0002"}
    with engine.connect() as connection:
        assert steps.current(connection) == "0002"
    engine.dispose()


def test_a_step_that_fails_leaves_nothing(tmp_path: Path, engine: Engine) -> None:
    """All steps are one transaction: neither a table nor a note of those before it is left."""
    steps = write_steps(tmp_path / "steps", last="raise RuntimeError('on purpose')")
    with pytest.raises(RuntimeError, match="on purpose"):
        steps.apply(engine)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_a_step_nobody_knows(tmp_path: Path, engine: Engine) -> None:
    """A newer schema is refused, and left as it is."""
    steps = write_steps(tmp_path / "steps")
    steps.apply(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE notes SET version_num = '0009'"))
    with pytest.raises(ConfigInvalid, match="upgrade"):
        steps.apply(engine)
    engine.dispose()


@pytest.mark.parametrize("steps", [LEDGER, METABASE], ids=["ledger", "metabase"])
def test_names_of_files_are_their_revisions(steps: SchemaSteps) -> None:
    """The order by name, which is all that is read as a rule, is the one that Alembic follows."""
    script = ScriptDirectory(str(steps.folder.parent), version_locations=[str(steps.folder)])
    found = [step.revision for step in reversed(list(script.walk_revisions()))]
    assert steps.revisions == found


@pytest.fixture(params=["sqlite", "postgresql"])
def two_engines(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Engine, Engine]]:
    """Two blank databases of each kind."""
    if request.param == "sqlite":
        urls = [f"sqlite:///{tmp_path / name}.db" for name in ("stepped", "whole")]
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        urls = [server.database() for _ in range(2)]
    first, second = map(create_engine, urls)
    yield first, second
    first.dispose()
    second.dispose()


@pytest.mark.parametrize("steps", [LEDGER, METABASE], ids=["ledger", "metabase"])
def test_a_new_database_is_what_its_steps_make(
    steps: SchemaSteps, two_engines: tuple[Engine, Engine]
) -> None:
    """Tables, keys, indexes, their names and every row are the same; only columns may be moved."""
    stepped, whole = two_engines
    for revision in steps.revisions:
        steps.apply(stepped, revision)
    steps.apply(whole)
    assert describe(whole) == describe(stepped)


def describe(engine: Engine) -> dict[str, Any]:
    """All there is in a database; columns and rows without their order."""
    looked = inspect(engine)
    told: dict[str, Any] = {}
    with engine.connect() as connection:
        for name in looked.get_table_names():
            columns = looked.get_columns(name)
            query = text(f"SELECT * FROM {name}")
            told[name] = {
                "columns": {
                    one["name"]: (str(one["type"]), one["nullable"], one["default"])
                    for one in columns
                },
                "keys": looked.get_pk_constraint(name)["constrained_columns"],
                "unique": {
                    tuple(one["column_names"]) for one in looked.get_unique_constraints(name)
                },
                "references": [
                    (one["constrained_columns"], one["referred_table"])
                    for one in looked.get_foreign_keys(name)
                ],
                "rows": [dict(row) for row in connection.execute(query).mappings()],
            }
        for kind, query in DETAILS[engine.dialect.name].items():
            told[kind] = {tuple(row) for row in connection.execute(text(query))}
    return told


DETAILS = {
    "sqlite": {
        "indexes": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        "rowids": "SELECT name, wr FROM pragma_table_list WHERE schema = 'main'",
    },
    "postgresql": {
        "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
        # That a column is never NULL is told with it; its constraint keeps a name from before.
        "constraints": "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace AND contype <> 'n'",
        "collations": "SELECT table_name, column_name, collation_name "
        "FROM information_schema.columns WHERE table_schema = 'public'",
    },
}
"""What the inspection of SQLAlchemy passes over."""


def test_a_ledger_that_lost_its_note_goes_through_the_steps(tmp_path: Path) -> None:
    """Tables of it are there, so it is not new: what it knew is kept."""
    engine = create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    LEDGER.apply(engine, "0001")
    with engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {LEDGER.note}"))
        connection.execute(
            text(
                "INSERT INTO calque_tables (tenant, database, name, table_id, checked_version, "
                "truncated_version) VALUES ('default', 'delta', 'file:///lake/t', 'id', 3, -1)"
            )
        )
    LEDGER.apply(engine)
    with engine.connect() as connection:
        assert LEDGER.current(connection) == LEDGER.revisions[-1]
        known = connection.execute(text("SELECT name, checked_version FROM calque_tables")).all()
    assert known == [("t", 3)]
    engine.dispose()


def test_a_ledger_is_made_and_opened_without_alembic(tmp_path: Path) -> None:
    """Every command opens one; Alembic takes as long to import as SQLAlchemy itself."""
    path = str(tmp_path / "ledger.db")
    script = (
        "import sys; from calque.ledger import open_ledger; "
        "open_ledger(sys.argv[1]).close(); print('alembic' in sys.modules)"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert told == ["False", "False"]
