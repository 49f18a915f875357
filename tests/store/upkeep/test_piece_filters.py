"""Filters of pieces: the bits of a plain model, however they are read; small on their way."""

from __future__ import annotations

import os
import pickle
import random

import pytest

from calque.errors import InvalidInput
from calque.store.metabase.scan import open_snapshot
from calque.store.nodes.bloom import WORDS_SIZE, BloomFilter, BloomShape, words_of
from calque.store.upkeep.gc import GcOptions, make_filters
from calque.store.upkeep.piece_filters import PieceFilters
from calque.store.upkeep.scan import LocalRunner, ScanJob
from tests.store.upkeep.kept_store import KeptStore


def model_table(shape: BloomShape, digests: list[bytes]) -> bytes:
    """Bit after bit, in whole numbers."""
    table = bytearray(shape.bits // 8)
    for digest in digests:
        at = int.from_bytes(digest[:8], "little") ^ shape.seed
        step = (int.from_bytes(digest[8:16], "little") + shape.seed) % 2**64 | 1
        for number in range(shape.hashes):
            bit = (at + number * step) % 2**64 % shape.bits
            table[bit // 8] |= 1 << bit % 8
    return bytes(table)


@pytest.mark.parametrize("shape", [
    BloomShape(8, 1, 0), BloomShape(8 * 1021, 4, 2**64 - 1), BloomShape.of(3000, 5, 1e-6),
    BloomShape(2**32, 3, 9), BloomShape(2**32 + 64, 3, 9),
], ids=lambda shape: f"{shape.bits}-{shape.hashes}")  # fmt: skip
def test_bits_are_those_of_the_model(shape: BloomShape) -> None:
    """Whatever the shape, in whatever portions and however often pieces are put in."""
    count = 300 if shape.bits > 2**30 else 3000
    digests = [os.urandom(31) for _ in range(count)]
    filled, words = BloomFilter(shape), words_of(b"".join(digests))
    assert len(words) == count * WORDS_SIZE
    half = count // 2 * WORDS_SIZE
    for some in (words[half:], b"", words[:half], words[half:]):
        filled.add(some)
    if shape.bits < 2**30:
        assert bytes(filled.table) == model_table(shape, digests)
    assert filled.holds([b"\x02" + each for each in digests]).all()
    asked = BloomFilter(shape, bytes(filled.table) if shape.bits < 2**30 else filled.table)
    assert asked.holds([b"\x02" + each for each in digests]).all()
    with pytest.raises(InvalidInput, match="only be asked"):
        asked.add(words)


def test_a_small_filter_takes_no_more_for_known_than_was_asked() -> None:
    """Two pieces that share all their bits are as rare as the share of false positives says."""
    mixed = random.Random(7)
    known, others = ([b"\x02" + mixed.randbytes(31) for _ in range(n)] for n in (12, 1_000_000))
    filled = BloomFilter(BloomShape.of(len(known), 5, 1e-9))
    filled.add(words_of(b"".join(each[1:] for each in known)))
    assert filled.holds(known).all()
    assert filled.holds(others).sum() == 0


@pytest.mark.parametrize("length", [1, 15, 17])
def test_words_cut_short_are_refused(length: int) -> None:
    """What lost bytes on its way is no result."""
    with pytest.raises(InvalidInput, match="16 bytes each"):
        BloomFilter(BloomShape.of(10, 1)).add(bytes(length))


def test_a_range_gives_no_more_than_its_pieces(plain: KeptStore) -> None:
    """What a task gets, holds and sends does not grow with the filters."""
    for number in range(6):
        plain.upload(f"o{number}", 900)
    nodes = {each.alias: each.node_id for each in plain.store.endpoint.admin.nodes()}
    with open_snapshot(plain.store.endpoint.database) as snapshot:
        sent = {}
        for pieces in (10, 10_000_000):
            observer = PieceFilters(nodes, {alias: BloomShape.of(pieces, 3) for alias in nodes})
            observer.start(snapshot)
            job = ScanJob(snapshot.source, (observer,))
            (found,) = LocalRunner().run(snapshot, job, snapshot.cut())
            observer.join(found.results[0])
            sent[pieces] = len(pickle.dumps(found)), len(pickle.dumps(job))
            assert observer.pieces.total() == plain.piece_count() == 24
    (least, job_of_least), (most, job_of_most) = sent.values()
    assert least == most < 24 * WORDS_SIZE + 1000
    assert job_of_most < job_of_least + 100


def test_ranges_have_a_limit_of_pieces(plain: KeptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of segments with many pieces a range has fewer: what is sent at once is bounded."""
    for number in range(9):
        plain.upload(f"o{number}", 900)
    whole = make_filters(plain.store, GcOptions())
    assert whole.scan.ranges == 1
    monkeypatch.setattr("calque.store.upkeep.gc._RANGE_PIECES", 12)  # four pieces a segment
    assert make_filters(plain.store, GcOptions()).scan.ranges >= 3


def test_any_cut_in_any_order_gives_the_same(kept: KeptStore) -> None:
    """Ranges of any size, joined in any order, some twice, give one filter bit for bit."""
    for number in range(7):
        kept.upload(f"o{number}", 1500)
    nodes = {each.alias: each.node_id for each in kept.store.endpoint.admin.nodes()}
    shapes = {alias: BloomShape.of(30, 11) for alias in nodes}
    tables = []
    with open_snapshot(kept.store.endpoint.database) as snapshot:
        for rows in (1, 4, 1000):
            observer = PieceFilters(nodes, shapes)
            observer.start(snapshot)
            job = ScanJob(snapshot.source, (observer,))
            found = [*LocalRunner().run(snapshot, job, snapshot.cut(rows_each=rows))]
            random.Random(rows).shuffle(found)
            for each in [*found, found[0]]:
                observer.join(each.results[0])
            tables.append({alias: bytes(each.table) for alias, each in observer.filters.items()})
    assert tables[0] == tables[1] == tables[2]
    assert any(map(any, tables[0].values()))
