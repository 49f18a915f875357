"""Where a ledger may live, and how long its records do."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import (
    ConfigInvalid,
)
from calque.ledger import open_ledger
from calque.ledger.database import DEFAULT_LIFE
from calque.ledger.identity import DAY


def test_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    """A file that is no database is a clear error that names it."""
    path = tmp_path / "x.db"
    path.write_text("this is no database, and long enough to be read as a header " * 20)
    with pytest.raises(ConfigInvalid, match=r"x\.db"):
        open_ledger(path)


def test_a_wrong_url() -> None:
    """A URL of another kind of database is refused with what is possible."""
    with pytest.raises(ConfigInvalid, match="mysql"):
        open_ledger("mysql://h/d")


def test_default_life_is_64_days() -> None:
    """As long as those know it who come from Snowflake."""
    assert DEFAULT_LIFE == 64 * DAY
