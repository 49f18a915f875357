"""Where a ledger may live, and how long its records do."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import literal_column, select, text

from calque.errors import CalqueError, ConfigInvalid
from calque.ledger import open_ledger
from calque.ledger.database import DEFAULT_LIFE, fetch_plain_rows
from calque.ledger.identity import DAY


def test_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    """A file that is no database is a clear error that names it."""
    path = tmp_path / "x.db"
    path.write_text("this is no database, and long enough to be read as a header " * 20)
    with pytest.raises(ConfigInvalid, match=r"x\.db"):
        open_ledger(path)


def test_an_error_while_rows_are_read(tmp_path: Path) -> None:
    """What SQLite finds wrong in the midst of a result is told as an error of the ledger too."""
    rows = text("(VALUES ('1'), ('no json'))")  # the second is looked at when it is fetched
    query = select(literal_column("json_extract(column1, '$')")).select_from(rows)
    with open_ledger(tmp_path / "x.db") as ledger:
        with pytest.raises(CalqueError, match=r"x\.db.*malformed JSON"), ledger.read() as one:
            fetch_plain_rows(one, query)
        with ledger.read() as one:
            assert fetch_plain_rows(one, select(literal_column("7"))) == [(7,)]


def test_a_wrong_url() -> None:
    """A URL of another kind of database is refused with what is possible."""
    with pytest.raises(ConfigInvalid, match="mysql"):
        open_ledger("mysql://h/d")


def test_default_life_is_64_days() -> None:
    """As long as those know it who come from Snowflake."""
    assert DEFAULT_LIFE == 64 * DAY
