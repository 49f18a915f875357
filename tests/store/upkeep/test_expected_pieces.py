"""What each node must have, and what it has: compared in memory that does not grow with them."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from calque.errors import Aborted
from calque.operator.layers.chain import Call
from calque.store.metabase.model.packed_pieces import pack
from calque.store.metabase.model.records import Redundancy
from calque.store.nodes.node import Node
from calque.store.upkeep import sorted_runs, stored_pieces
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.expected_pieces import EXPECTED, ExpectedPieces, derive_digests, key_of
from calque.store.upkeep.fsck import check_store
from calque.store.upkeep.sorted_runs import SortedRuns, slices_for
from calque.store.upkeep.stored_pieces import STORED
from tests.store.upkeep.kept_store import KeptStore

NODES = {1: b"a" * 32, 2: b"b" * 32, 3: b"c" * 32}
REDUNDANCY = Redundancy(256, 2, 3, 3, 3).encode()
PACKED = pack([(0, 1), (1, 2), (2, 3)])
RANGES, ROWS = 60, 1000


def fill(expected: ExpectedPieces) -> dict[int, set[int]]:
    """As a scan does, range by range; the keys of each node."""
    keys: dict[int, set[int]] = {alias: set() for alias in NODES}
    for number in range(RANGES):
        roots = [os.urandom(32) for _ in range(ROWS)]
        streams = [number.to_bytes(8, "big") + os.urandom(8) for _ in range(ROWS)]
        fork = expected.fork()
        columns = (streams, range(ROWS), roots, [900] * ROWS, [REDUNDANCY] * ROWS,
                   [PACKED] * ROWS, [None] * ROWS)  # fmt: skip
        fork.process(dict(zip(expected.columns, columns, strict=True)))
        expected.join(fork.result())
        for root in roots if not tracemalloc.is_tracing() else ():
            for alias, digest in derive_digests(NODES, root, PACKED):
                keys[alias].add(key_of(digest))
    return keys


def test_every_piece_comes_back_once_and_in_order() -> None:
    """Of each node its own, whatever the order in which ranges were joined."""
    with closing(ExpectedPieces(NODES, 0)) as expected:
        keys = fill(expected)
        for alias, wanted in keys.items():
            found = np.concatenate(list(expected.runs.slices(alias, 7)))["key"].tolist()
            assert found == sorted(wanted)
            assert expected.runs.count(alias) == RANGES * ROWS


def test_memory_does_not_grow_with_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filling and reading it take a small part of what the pieces are."""
    monkeypatch.setattr(sorted_runs, "SLICE", ROWS)
    monkeypatch.setattr(sorted_runs, "_IN_MEMORY", 2**16)
    tracemalloc.start()
    try:
        with closing(ExpectedPieces(NODES, 0)) as expected:
            fill(expected)
            slices = slices_for(expected.runs.count(1))
            assert sum(map(len, expected.runs.slices(1, slices))) == RANGES * ROWS
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    all_of_them = len(NODES) * RANGES * ROWS * EXPECTED.itemsize
    assert most < all_of_them / 4


def test_keys_at_both_ends_and_many_of_one() -> None:
    """The smallest and the largest key are in a slice, and equal ones in the same."""
    keys = [0, 2**64 - 1, *[2**63] * 500, 2**63 - 1, 1]
    with closing(SortedRuns(STORED)) as runs:
        for some in (keys[:200], keys[200:], []):
            runs.add(4, np.array([(key, b"x" * 32, 1, 2.0) for key in some], STORED))
        slices = [each["key"].tolist() for each in runs.slices(4, 2)]
        assert slices == [sorted(key for key in keys if key < 2**63), sorted(keys)[3:]]
        assert [len(each) for each in runs.slices(5, 3)] == [0, 0, 0]


def test_findings_are_the_same_in_many_slices(
    kept: KeptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut finely or not at all: the same pieces are missing, resized and orphaned."""
    for number in range(6):
        kept.upload(f"o{number}")
    kept.lay_garbage(2)
    files = sorted(kept.store.folder.glob("disks/*/pieces/*/*/*"))
    for path in files[::5]:
        path.unlink()
    for path in files[1::7]:
        if path.exists():
            path.write_bytes(b"?")
    whole = check_store(kept.store, young=True)
    monkeypatch.setattr(sorted_runs, "SLICE", 1)
    monkeypatch.setattr(stored_pieces, "SLICE", 2)
    cut = check_store(kept.store, young=True, scan=ScanOptions(range_rows=2))
    assert sorted(cut) == sorted(whole)
    assert {each.kind for each in whole} == {
        "missing piece", "orphaned piece", "piece of the wrong size",
    }  # fmt: skip


def test_of_each_kind_the_first_are_named(kept: KeptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that lost everything does not fill the memory with what it lost."""
    for number in range(6):
        kept.upload(f"o{number}")
    kept.lay_garbage(5)
    for path in kept.disk(0).glob("pieces/*/*/*"):
        path.unlink()
    monkeypatch.setattr(stored_pieces, "MOST", 3)
    monkeypatch.setattr(sorted_runs, "SLICE", 2)
    findings = check_store(kept.store, young=True)
    missing = [each for each in findings if each.kind == "missing piece"]
    assert len(missing) == len({each.where for each in missing}) == 3
    assert len([each for each in findings if each.kind == "orphaned piece"]) == 5 * 3


def test_what_was_deleted_since_hides_no_loss(
    kept: KeptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces that went with their object are not missing, and those that are lost are named."""
    for number in range(6):
        kept.upload(f"o{number}")
    run = stored_pieces.PieceCheck.run

    def delete_then_run(check: stored_pieces.PieceCheck) -> object:
        for number in range(5):
            kept.delete(f"o{number}")
        for path in kept.store.folder.glob("disks/*/pieces/*/*/*"):
            path.unlink()
        return run(check)

    monkeypatch.setattr(stored_pieces, "MOST", 2)
    monkeypatch.setattr(stored_pieces.PieceCheck, "run", delete_then_run)
    findings = check_store(kept.store)
    assert {each.kind for each in findings} == {"missing piece"}
    assert len(findings) >= 6


def test_one_that_is_stopped_tells_no_half(
    plain: KeptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes are listed for hours: who stops does not wait for it, and no node seems silent."""
    monkeypatch.setattr(stored_pieces, "SLICE", 2)
    for number in range(4):
        plain.upload(f"o{number}")
    listed = list[str]()

    def note(call: Call, proceed: Callable[[Call], Any]) -> Any:
        listed.append(call.verb)
        return proceed(call)

    node = plain.node(0)
    watched = Node(node.id, node.root.layer(note), node.placement)
    plain.store.nodes._nodes[node.id] = watched
    with pytest.raises(Aborted, match="stopped"):
        check_store(plain.store, over=lambda: "list" in listed)
