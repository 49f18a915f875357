"""fsck of a store: rows and pieces, and what can be mended safely is."""

from __future__ import annotations

import json
from datetime import timedelta

from sqlalchemy import delete, insert, update
from typer.testing import CliRunner

from calque.cli.main import app
from calque.store.metabase.model.schema import (
    objects,
    operation_keys,
    project_usage,
    segment_copies,
)
from calque.store.upkeep.engines import ScanOptions
from calque.store.upkeep.fsck import check_store, mend_store
from tests.store.upkeep.kept_store import BUCKET, KeptStore

KEYS = {
    "operation_id": b"x" * 16, "first_position": 0, "last_position": 0, "key_count": 1,
    "positions": b"", "nonces": b"", "keys": b"",
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
