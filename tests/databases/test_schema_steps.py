"""Steps of a schema: in order, once, all or none, and in folders of any name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

from calque.databases.schema_steps import SchemaSteps
from calque.databases.sqlite import open_sqlite
from calque.errors import ConfigInvalid
from calque.ledger.migrate import STEPS as LEDGER
from calque.store.metabase.engine.migrate import STEPS as METABASE

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


def test_a_current_ledger_is_opened_without_alembic(tmp_path: Path) -> None:
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
    assert told == ["True", "False"]
