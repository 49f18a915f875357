"""Records of files: scans in key order, on SQLite and PostgreSQL."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from calque.ledger import Ledger, TableRow
from calque.ledger.files import after_prefix, forget, mget, scan
from calque.ledger.history import history
from calque.ledger.schema import loads
from tests.ledger.conftest import KEY
from tests.ledger.filling import load


def storable(text: str) -> bool:
    return "\0" not in text and text.isprintable()


places = st.lists(st.text(min_size=1, max_size=6).filter(storable), unique=True, max_size=12)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(names=places, prefix=st.text(max_size=2).filter(storable))
def test_scan_is_in_code_point_order(
    ledger: Ledger, table: TableRow, names: list[str], prefix: str
) -> None:
    """A scan gives the records of a prefix as a sorted Python list would, on every database."""
    forget(ledger, table)
    with ledger.write() as connection:
        connection.execute(update(loads).values(state="COMMITTED"))
    load(ledger, table, f"L{len(list(history(ledger, KEY)))}", names)
    expected = sorted(name for name in names if name.startswith(prefix))
    assert [one.location for one in scan(ledger, table, prefix)] == expected
    assert set(mget(ledger, table, [*names, "nope"])) == set(names)


@given(st.text(max_size=4), st.text(max_size=4))
def test_after_prefix_bounds_a_prefix(prefix: str, rest: str) -> None:
    """Every string with the prefix lies below the bound, and the bound has not the prefix."""
    end = after_prefix(prefix)
    if end is not None:
        assert prefix <= prefix + rest < end
        assert not end.startswith(prefix)
