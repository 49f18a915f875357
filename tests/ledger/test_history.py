"""What is shown of records and loads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import update

from calque.errors import NotFound
from calque.ledger import Ledger, TableRow
from calque.ledger.history import find_load_by_name, find_own_load, records_of
from calque.ledger.schema import loads
from calque.ledger.tables import register_table
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


def test_a_tenant_is_shown_its_own_loads(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """By id and by label: what another tenant's load rejected is nobody else's to see."""
    load(ledger, table, "ours", ["a"])
    ledger.tenant = "other"
    clock.now += 1
    load(ledger, register_table(ledger, KEY), "theirs", ["a"])
    with ledger.write() as connection:
        connection.execute(update(loads).values(label="day"))
    assert find_load_by_name(ledger, "day").load_id == "theirs"
    ledger.tenant = "default"
    assert find_load_by_name(ledger, "day").load_id == "ours"
    assert find_own_load(ledger, "ours").load_id == "ours"
    for find in (find_load_by_name, find_own_load):
        with pytest.raises(NotFound):
            find(ledger, "theirs")
