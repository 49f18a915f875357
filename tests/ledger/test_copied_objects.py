"""The file of hashes by which copies are known again."""

from __future__ import annotations

from pathlib import Path

from calque.ledger.copied_objects import CopiedObjects


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    """In another process, the youngest of a path; what was not kept is not."""
    file = tmp_path / "deep" / "copies.db"
    kept = CopiedObjects.open(file)
    assert kept is not None
    kept.keep([(b"a", b"1", b"2"), (b"b", b"3", b"4")])
    kept.keep([(b"a", b"5", b"6")])
    kept.close()
    again = CopiedObjects.open(file)
    assert again is not None
    assert again.find(b"a") == (b"5", b"6")
    assert again.find(b"c") is None
    again.close()


def test_a_file_that_is_none_is_done_without(tmp_path: Path) -> None:
    """Damaged, or in a folder that cannot be made: nothing is remembered, and nothing raised."""
    (tmp_path / "damaged.db").write_bytes(b"this is no database" * 100)
    assert CopiedObjects.open(tmp_path / "damaged.db") is None
    assert CopiedObjects.open(tmp_path / "damaged.db" / "below.db") is None
