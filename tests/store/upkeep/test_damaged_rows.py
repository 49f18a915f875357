"""A row of a segment that nobody can read: it is told, and the others are looked after."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from calque.errors import IntegrityError
from calque.store.metabase.model.packed_pieces import pack
from calque.store.metabase.model.records import Redundancy
from calque.store.metabase.model.schema import segments
from calque.store.upkeep.audit import audit_store
from calque.store.upkeep.exit import exit_node
from calque.store.upkeep.expire import sweep_store
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
    "no piece": {"remote_alias_pieces": b"\x01"},
    "more pieces than there are": {"remote_alias_pieces": pack([(n, 2) for n in range(300)])},
    "a number that is too large": {"remote_alias_pieces": b"\x01" + b"\x80" * 8 + b"\x01\x01"},
    "numbers of other pieces": {"remote_alias_pieces": pack([(3, 2), (4, 3), (5, 4), (6, 5)])},
}
NO_LIST = (
    "pieces",
    "a list cut short",
    "no piece",
    "more pieces than there are",
    "a number that is too large",
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_others_are_looked_after(plain: KeptStore, damage: str) -> None:
    """Repair, audit, exit and tally get to their end, and all other objects are whole again; the
    damaged one is lost to repair, and fsck names it alone. No node has left while nobody can tell
    whether that row names it."""
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
    left = exit_node(plain.store, plain.node(1).id.hex())
    assert damage not in NO_LIST or not left.is_done
    findings = check_store(plain.store, nodes=False)
    assert {each.where.partition(":")[0] for each in findings} == {spoilt}
    plain.read_all()


ELSEWHERE: dict[str, dict[str, object]] = {
    "no size": {"encrypted_size": 0},
    "a size below zero": {"encrypted_size": -1},
    "a size that no disk has": {"encrypted_size": 2**62},
    "no root piece id": {"root_piece_id": b""},
    "a root piece id that is too long": {"root_piece_id": b"r" * 100},
    "an expiry beyond the calendar": {"expires_at": 2**62},
    "an expiry before it": {"expires_at": -(2**62)},
    "a placement without nodes": {"placement": 9999},
}
"""What cannot be repaired, and is not known to be lost."""


def test_no_damage_stops_the_others(plain: KeptStore) -> None:
    """Whatever stands in some rows: every service gets to its end, and fsck tells what it can."""
    spoilt = {}
    for damage in ELSEWHERE:
        plain.upload(damage, 900)
        spoilt[damage] = plain.project.stat(BUCKET, damage).etag
        del plain.contents[damage]
    for number in range(3):
        plain.upload(f"o{number}", 900)
    with plain.store.endpoint.database.engine.begin() as connection:
        for damage, etag in spoilt.items():
            rows = update(segments).where(segments.c.stream_id == bytes.fromhex(etag))
            assert connection.execute(rows.values(**ELSEWHERE[damage])).rowcount == 1
    plain.lose_node(0)
    report = repair_store(plain.store, RepairOptions(gone=(plain.node(0).id.hex(),)))
    assert report.lost_segments == 0
    assert audit_store(plain.store).segments
    assert tally_store(plain.store).segments == len(spoilt) + 3
    exit_node(plain.store, plain.node(1).id.hex())
    sweep_store(plain.store)
    told = {each.where.partition(":")[0] for each in check_store(plain.store)}
    assert set(spoilt.values()) - told == {spoilt["a placement without nodes"]}
    plain.read_all()


UNKNOWN_PIECES = [
    damage
    for name, damage in (DAMAGE | ELSEWHERE).items()
    if damage.keys() & {"remote_alias_pieces", "root_piece_id"}
    # That those are others is seen by the redundancy alone, which a collection does not read.
    and name != "numbers of other pieces"
]


def test_garbage_waits_for_damaged_rows(plain: KeptStore) -> None:
    """Nobody knows which pieces such a row needs, so none is taken; the error says who tells."""
    plain.upload("o", 900)
    before = plain.pieces()
    plain.pass_days(9)
    with plain.store.endpoint.database.engine.connect() as connection:
        (sound,) = connection.execute(select(segments)).mappings()
    for damage in UNKNOWN_PIECES:
        with plain.store.endpoint.database.engine.begin() as connection:
            connection.execute(update(segments).values(**{**sound, **damage}))
        with pytest.raises(IntegrityError) as raised:
            collect_store(plain.store)
        assert "fsck" in str(raised.value), damage
        assert plain.pieces() == before
