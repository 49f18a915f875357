"""What is shown of records and loads."""

from __future__ import annotations

from dataclasses import replace

from calque.ledger import Ledger, TableRow
from calque.ledger.history import records_of
from tests.ledger.conftest import KEY, Clock
from tests.ledger.filling import identity, load


def test_value_is_all_metadata(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """A record holds everything known of the file and of its load."""
    file = replace(identity("s3://b/a", etag='"x-1"', size=7), version="v1", token="tok")
    load(ledger, table, "L", [file], version=5)
    (found,) = records_of(ledger, KEY)
    assert found["size"] == 7
    assert found["etag"] == '"x-1"'
    assert found["last_modified"] == file.last_modified
    assert (found["version"], found["token"], found["content_hash"]) == ("v1", "tok", "x3:hash")
    assert (found["load_id"], found["rows"], found["errors"]) == ("L", 3, 0)
    assert found["table_version"] == 5
    assert (found["expires_at"] - found["loaded_at"]).days == 64
