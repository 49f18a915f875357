"""A row of a segment that nobody can read: it is told, and the others are looked after."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from calque.errors import IntegrityError
from calque.store.metabase.model.packed_pieces import pack
from calque.store.metabase.model.records import Redundancy
from calque.store.metabase.model.schema import segments
from calque.store.upkeep.audit import audit_store
from calque.store.upkeep.exit import exit_node
from calque.store.upkeep.fsck import check_store
from calque.store.upkeep.gc import collect_store
from calque.store.upkeep.repair import RepairOptions, repair_store
from calque.store.upkeep.tally import tally_store
from tests.store.upkeep.kept_store import BUCKET, KeptStore

DAMAGE: dict[str, dict[str, object]] = {
    "pieces": {"remote_alias_pieces": b"\xff\xfe"},
    "a list cut short": {"remote_alias_pieces": pack([(0, 300)])[:-1]},
    "nodes": {"remote_alias_pieces": pack([(0, 77), (1, 78), (2, 79), (3, 80)])},
    "redundancy": {"redundancy": 0},
    "more required than there are": {"redundancy": Redundancy(256, 6, 5, 5, 4).encode()},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_others_are_looked_after(plain: KeptStore, damage: str) -> None:
    """Repair, audit, exit and tally get to their end, and all other objects are whole again; the
    damaged one is lost to repair, and fsck names it alone."""
    for number in range(5):
        plain.upload(f"o{number}", 900)
    spoilt = plain.project.stat(BUCKET, "o2").etag
    with plain.store.endpoint.database.engine.begin() as connection:
        rows = update(segments).where(segments.c.stream_id == bytes.fromhex(spoilt))
        assert connection.execute(rows.values(**DAMAGE[damage])).rowcount == 1
    del plain.contents["o2"]
    plain.lose_node(0)
    report = repair_store(plain.store, RepairOptions(gone=(plain.node(0).id.hex(),)))
    assert report.lost == (f"{spoilt}/0",)
    assert audit_store(plain.store).segments
    assert tally_store(plain.store).segments == 5
    exit_node(plain.store, plain.node(1).id.hex())
    findings = check_store(plain.store, nodes=False)
    assert {each.where.partition(":")[0] for each in findings} == {spoilt}
    plain.read_all()


def test_garbage_waits_for_damaged_rows(plain: KeptStore) -> None:
    """Nobody knows which pieces such a row needs, so none is taken; the error says who tells."""
    plain.upload("o", 900)
    with plain.store.endpoint.database.engine.begin() as connection:
        connection.execute(update(segments).values(remote_alias_pieces=b"\xff"))
    before = plain.pieces()
    plain.pass_days(9)
    with pytest.raises(IntegrityError, match="fsck"):
        collect_store(plain.store)
    assert plain.pieces() == before
