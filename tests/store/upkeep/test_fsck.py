"""fsck of a store: rows and pieces, and what can be mended safely is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, insert, select, update
from typer.testing import CliRunner

from calque.cli.main import app
from calque.store.metabase.fsck import Finding
from calque.store.metabase.model.schema import (
    objects,
    operation_keys,
    operation_objects,
    operations,
    project_usage,
    segment_copies,
    segment_slices,
)
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.fsck import check_store, mend_store
from tests.store.upkeep.kept_store import BUCKET, KeptStore

KEYS: dict[str, Any] = {
    "operation_id": b"x" * 16, "first_position": 0, "last_position": 0, "key_count": 1,
    "positions": b"", "nonces": b"", "keys": b"",
}  # fmt: skip

STAGED = {
    "operation_id": b"x" * 16, "stream_id": b"s" * 16, "new_stream_id": b"n" * 16,
    "new_key": b"k", "seen_metadata_key": None, "metadata_nonce": None, "metadata_key": None,
    "key_count": 0, "nonces": b"", "keys": b"",
}  # fmt: skip


def test_what_is_safe_is_mended(kept: KeptStore) -> None:
    """References that nobody uses, keys of no operation and quota; afterwards it is whole."""
    kept.upload("a")
    kept.copy("a", "b")
    with kept.store.endpoint.database.engine.begin() as connection:
        stranger = {"stream_id": b"s" * 16, "ancestor_stream_id": b"t" * 16}
        connection.execute(insert(segment_copies).values(stranger))
        connection.execute(insert(operation_keys).values(KEYS))
        connection.execute(
            update(project_usage).where(project_usage.c.shard == 0).values(bytes=7, objects=-3)
        )
    findings = check_store(kept.store, young=True)
    assert {each.kind for each in findings} == {
        "orphaned reference", "dangling ancestor", "keys without operation", "quota drift",
    }  # fmt: skip
    mended = mend_store(kept.store, findings)
    assert {each.finding.kind for each in mended if not each.done} == {"dangling ancestor"}
    kept.check()


def test_what_prefixes_and_ranges_leave_is_mended(kept: KeptStore) -> None:
    """Staged objects of no operation, and a reference of an object that is slices alone."""
    kept.upload("a")
    upload = kept.project.begin_multipart(BUCKET, "ranges")
    upload.copy_part(1, BUCKET, "a", offset=100, length=500)
    upload.commit()
    kept.contents["ranges"] = kept.contents["a"][100:600]
    with kept.store.endpoint.database.engine.begin() as connection:
        holder, source = connection.execute(
            select(segment_slices.c.stream_id, segment_slices.c.source_stream_id)
        ).one()
        idle = {"stream_id": holder, "ancestor_stream_id": source}
        connection.execute(insert(segment_copies).values(idle))
        connection.execute(insert(operation_objects).values(STAGED))
    findings = check_store(kept.store, young=True)
    assert {each.kind for each in findings} == {
        "reference that borrows nothing", "objects without operation",
    }  # fmt: skip
    assert all(each.done for each in mend_store(kept.store, findings))
    kept.check()


def test_what_is_used_by_now_is_not_mended(kept: KeptStore) -> None:
    """A finding is some hours old: each is looked at again before anything goes."""
    kept.upload("a")
    kept.copy("a", "b")
    database = kept.store.endpoint.database
    with database.engine.begin() as connection:
        connection.execute(insert(operation_keys).values(KEYS))
        connection.execute(insert(operation_objects).values(STAGED))
        (copy,) = connection.execute(select(segment_copies.c.stream_id)).scalars()
    operation = KEYS["operation_id"].hex()
    findings = [
        Finding("orphaned reference", f"{copy.hex()}: 00"),
        Finding("reference that borrows nothing", f"{copy.hex()}: 00"),
        Finding("keys without operation", operation),
        Finding("objects without operation", operation),
    ]
    collecting = {
        "operation_id": KEYS["operation_id"], "project_id": b"p" * 16, "state": 1,
        "expires_at": 2**60,
    }  # fmt: skip
    with database.engine.begin() as connection:
        connection.execute(insert(operations).values(collecting))
    assert not any(each.done for each in mend_store(kept.store, findings))
    kept.check()
    with database.engine.begin() as connection:
        connection.execute(update(operations).values(state=2))
    assert [each.done for each in mend_store(kept.store, findings)] == [False, False, True, True]
    kept.check()


def test_what_could_hide_a_loss_is_left(plain: KeptStore) -> None:
    """An object whose row is gone takes its segments with it in no repair."""
    plain.upload("a")
    with plain.store.endpoint.database.engine.begin() as connection:
        connection.execute(delete(objects))
    findings = check_store(plain.store, nodes=False, scan=ScanOptions(range_rows=1))
    mended = mend_store(plain.store, findings)
    assert [each.finding.kind for each in mended if not each.done] == ["segments without object"]
    assert "segments without object" in {
        each.kind for each in check_store(plain.store, nodes=False)
    }


def test_the_command_repairs_and_says_what_it_cannot(plain: KeptStore) -> None:
    """Exit code 1 while something is wrong, 0 once it is mended."""
    plain.upload("a")
    with plain.store.endpoint.database.engine.begin() as connection:
        connection.execute(update(project_usage).values(objects=9))
    command = ["store", "fsck", str(plain.store.folder), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert [row["kind"] for row in json.loads(done.stdout)] == ["quota drift"]
    done = CliRunner().invoke(app, [*command, "--repair"])
    assert (done.exit_code, json.loads(done.stdout)[0]["mended"]) == (0, True)
    assert CliRunner().invoke(app, command).exit_code == 0


def test_pieces_are_compared_with_rows(kept: KeptStore) -> None:
    """Missing, resized and orphaned pieces are named, each with its node; what expired is not."""
    soon = kept.clock.now() + timedelta(hours=1)
    kept.upload("a", 900)
    kept.project.upload(BUCKET, "short-lived", bytes(900), expires=soon)
    first, second, *_ = (path for path in kept.store.folder.glob("disks/*/pieces/*/*/*"))
    kinds = _kinds(kept, nodes=False)
    assert kinds == []
    stray = first.with_name("ab" * 30)
    stray.write_bytes(b"x")
    second.write_bytes(b"short")
    first.unlink()
    assert _kinds(kept) == ["missing piece", "orphaned piece", "piece of the wrong size"]
    findings = check_store(kept.store, young=True, scan=ScanOptions(range_rows=1))
    name = "".join(first.parts[-3:])
    assert [each.where.split()[0] for each in findings if each.kind == "missing piece"] == [name]
    assert [each.kind for each in check_store(kept.store)] != []
    kept.delete("a")
    kept.clock.ahead += timedelta(hours=5)
    for path in kept.store.folder.glob("disks/*/pieces/*/*/*"):
        path.unlink()
    assert _kinds(kept) == []


def _kinds(kept: KeptStore, nodes: bool = True) -> list[str]:
    return sorted(each.kind for each in check_store(kept.store, young=True, nodes=nodes))
