"""Records, claims, leases and the end of loads, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from calque.errors import (
    Aborted,
    AlreadyExists,
    CalqueError,
    ConfigInvalid,
    NotFound,
)
from calque.ledger import Ledger, TableRow, open_ledger
from calque.ledger.abort import abort
from calque.ledger.claim import LoadStart, Wanted, claim
from calque.ledger.database import DEFAULT_LIFE
from calque.ledger.expire import expire
from calque.ledger.files import after_prefix, forget, mget, parts_of, renew, scan
from calque.ledger.finalise import finalise
from calque.ledger.history import find_load, history, records_of
from calque.ledger.identity import DAY
from calque.ledger.lease import (
    dead_loads,
    process_is_gone,
    renew_lease,
    take_over,
    this_process,
)
from calque.ledger.manifest import Manifest
from calque.ledger.prepare import manifest_of, prepare
from calque.ledger.schema import claims, loads
from calque.ledger.tables import find_table, register_table, void_records
from tests.ledger.conftest import KEY, Clock
from tests.ledger.filling import OWNER, begin, identity, load, manifest


def held(ledger: Ledger) -> dict[str, str]:
    with ledger.read() as connection:
        return {row.location: row.load_id for row in connection.execute(select(claims))}


def test_key_is_tenant_database_table_and_file(url: str) -> None:
    """Tenants, databases, tables and re-made tables never see each other's records."""
    keys = [
        KEY,
        replace(KEY, catalog="iceberg:/lake"),
        replace(KEY, address="file:///lake/u"),
        replace(KEY, table_id="id-2"),
    ]
    for tenant in ("a", "b"):
        with open_ledger(url, tenant=tenant) as ledger:
            for number, key in enumerate(keys):
                row = register_table(ledger, key)
                assert row.is_unchecked
                load(ledger, row, f"{tenant}{number}", [f"s3://b/{tenant}{number}"])
                assert [one.location for one in scan(ledger, row)] == [f"s3://b/{tenant}{number}"]
            assert register_table(ledger, KEY).number == find_table(ledger, KEY).number


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


def storable(text: str) -> bool:
    return "\0" not in text and text.isprintable()


places = st.lists(st.text(min_size=1, max_size=6).filter(storable), unique=True, max_size=12)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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


def test_claim_grants_what_nobody_holds(ledger: Ledger, table: TableRow) -> None:
    """A file has one holder; others are told who."""
    assert begin(ledger, table, "A", ["a", "b"]).granted == ("a", "b")
    second = begin(ledger, table, "B", ["b", "c"])
    assert second.granted == ("c",)
    assert second.held == {"b": "A"}
    assert held(ledger) == {"a": "A", "b": "A", "c": "B"}


def test_claim_sees_what_was_loaded_meanwhile(ledger: Ledger, table: TableRow) -> None:
    """A file that another load finished after our look is not claimed."""
    load(ledger, table, "A", ["a"])
    late = begin(ledger, table, "B", ["a", "b"])
    assert late.loaded == ("a",)
    assert late.granted == ("b",)
    assert held(ledger) == {"b": "B"}


def test_claim_of_a_changed_file(ledger: Ledger, table: TableRow) -> None:
    """A record with another identity does not stand in the way, nor does the one we compared."""
    load(ledger, table, "A", ["a"])
    assert begin(ledger, table, "B", [identity("a", etag="new", size=11)]).granted == ("a",)
    abort(ledger, "B", "x", Manifest())
    assert begin(ledger, table, "C", ["a"], seen="A").granted == ("a",)


def test_load_ids_are_used_once(ledger: Ledger, table: TableRow) -> None:
    """Opening a load with a used id is refused and claims nothing."""
    begin(ledger, table, "A", ["a"])
    with pytest.raises(AlreadyExists):
        begin(ledger, table, "A", ["b"])
    assert held(ledger) == {"a": "A"}


def test_finalise_is_done_once(ledger: Ledger, table: TableRow) -> None:
    """The second finalise of a load finds it done."""
    begin(ledger, table, "A", ["a"])
    prepare(ledger, "A", OWNER, manifest(ledger, ["a"]))
    assert finalise(ledger, "A", 3)
    assert not finalise(ledger, "A", 3)
    assert held(ledger) == {}
    assert find_load(ledger, "A").state == "COMMITTED"


def test_abort_keeps_the_earlier_record(ledger: Ledger, table: TableRow) -> None:
    """A changed file whose new load is aborted still has the record of its earlier one."""
    load(ledger, table, "A", ["a"])
    begin(ledger, table, "B", [identity("a", etag="new")])
    assert abort(ledger, "B", "given up", Manifest())
    assert not abort(ledger, "B", "given up", Manifest())
    assert mget(ledger, table, ["a"])["a"].load_id == "A"
    assert find_load(ledger, "B").message == "given up"


def test_prepare_needs_the_lease_holder(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """A load that was taken over cannot be prepared by its first owner."""
    begin(ledger, table, "A", ["a"], lease=1)
    clock.now += 2_000_000
    (dead,) = dead_loads(ledger, table)
    assert take_over(ledger, dead, "new/2/2", 60) is not None
    with pytest.raises(Aborted, match="taken over") as told:
        prepare(ledger, "A", OWNER, Manifest())
    assert told.value.retryable  # so that a watch goes on
    assert manifest_of(ledger, "A") is None


def test_take_over_is_won_once(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """Of two that meet a dead load only one recovers it; a renewed lease is nobody's."""
    begin(ledger, table, "A", ["a"], lease=1)
    assert dead_loads(ledger, table) == []
    clock.now += 2_000_000
    (dead,) = dead_loads(ledger, table)
    assert take_over(ledger, dead, "one/2/2", 60) is not None
    assert take_over(ledger, dead, "two/3/3", 60) is None
    assert not renew_lease(ledger, "A", OWNER, 60)
    assert renew_lease(ledger, "A", "one/2/2", 60)


def test_a_process_that_is_gone_is_known() -> None:
    """On one machine a dead process needs no lease to run out; any doubt counts as alive."""
    me = this_process()
    assert not process_is_gone(me)
    assert not process_is_gone(f"{me}#1")
    assert not process_is_gone("other-machine/1/1")
    machine = me.rsplit("/", 2)[0]
    assert process_is_gone(f"{machine}/{2**22 + 7}/1")


def test_late_finalise_of_an_older_commit(ledger: Ledger, table: TableRow) -> None:
    """Two FORCE loads finalised in the wrong order leave the record of the newer commit."""
    for name in ("old", "new"):
        begin(ledger, table, name, ["a"], force=True)
        prepare(ledger, name, OWNER, manifest(ledger, ["a"]))
        with ledger.write() as connection:
            connection.execute(claims.delete())
    finalise(ledger, "new", 8)
    finalise(ledger, "old", 7)
    assert mget(ledger, table, ["a"])["a"].load_id == "new"


def test_truncate_clears_only_what_came_before(ledger: Ledger, table: TableRow) -> None:
    """A commit after the truncate keeps its record, one before it gets none, even if late."""
    load(ledger, table, "A", ["a"], version=1)
    begin(ledger, table, "late", ["late"])
    prepare(ledger, "late", OWNER, manifest(ledger, ["late"]))
    load(ledger, table, "C", ["c"], version=4)
    begin(ledger, table, "T", [])
    prepare(ledger, "T", OWNER, Manifest(truncate=True))
    finalise(ledger, "T", 3)
    finalise(ledger, "late", 2)
    assert [one.location for one in scan(ledger, table)] == ["c"]


def test_a_late_finalise_moves_no_newer_rows(ledger: Ledger, table: TableRow) -> None:
    """Rows that a load moved are those of earlier loads: a newer record keeps its own places."""
    load(ledger, table, "A", ["a", "b", "c"], version=1)
    begin(ledger, table, "late", ["a"], force=True)
    moved = dict.fromkeys("bc", (("kept.parquet", 0, 3),))
    prepare(ledger, "late", OWNER, replace(manifest(ledger, ["a"]), moved=moved))
    load(ledger, table, "B", ["b"], version=3)
    finalise(ledger, "late", 2)
    parts = parts_of(ledger, table, ["b", "c"])
    assert "kept.parquet" not in str(parts["b"])
    assert "kept.parquet" in str(parts["c"])


def test_restore_voids_records(ledger: Ledger, table: TableRow) -> None:
    """Records of versions that a restore took back are dropped, others stay."""
    for number in (1, 2, 3):
        load(ledger, table, f"L{number}", [f"f{number}"], version=number)
    assert void_records(ledger, table, [(1, 2)], 5) == 1
    assert [one.location for one in scan(ledger, table)] == ["f1", "f3"]
    assert register_table(ledger, KEY).checked_version == 5


def test_restore_is_looked_at_again_while_a_load_is_open(ledger: Ledger, table: TableRow) -> None:
    """An open load may bring records of restored versions later: the version stays unchecked."""
    begin(ledger, table, "open", ["x"])
    void_records(ledger, table, [], 5)
    assert register_table(ledger, KEY).checked_version == -1


def test_expiry_and_renewal(ledger: Ledger, table: TableRow, clock: Clock) -> None:
    """A record lives 64 days unless it is renewed; an expired one counts until it is dropped."""
    load(ledger, table, "A", ["a", "b"])
    clock.now += 60 * DAY
    renew(ledger, table, ["a"])
    clock.now += 5 * DAY
    assert [one.location for one in scan(ledger, table)] == ["a", "b"]
    dropped = expire(ledger)
    assert (dropped.files, dropped.loads) == (1, 0)
    assert [one.location for one in scan(ledger, table)] == ["a"]
    assert set(mget(ledger, table, ["a", "b"])) == {"a"}
    clock.now += 65 * DAY
    dropped = expire(ledger)
    assert (dropped.files, dropped.loads) == (1, 1)
    with pytest.raises(NotFound):
        find_load(ledger, "A")


def test_a_transaction_is_all_or_nothing(ledger: Ledger, table: TableRow) -> None:
    """A claim that fails at its last step leaves neither load nor claims."""
    start = LoadStart(load_id="L", owner=OWNER, lease_seconds=1, base_version=0)
    unknown = replace(table, number=table.number + 99)
    with pytest.raises(CalqueError):
        claim(ledger, unknown, replace(start, statement="x"), [Wanted(identity("a"))])
    assert held(ledger) == {}
    with ledger.read() as connection:
        assert connection.execute(select(loads)).all() == []


def test_no_claims_is_a_load_too(ledger: Ledger, table: TableRow) -> None:
    """A load may claim nothing (a truncate)."""
    start = LoadStart(load_id="T", owner=OWNER, lease_seconds=1, base_version=0)
    assert claim(ledger, table, start, ()).granted == ()


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
