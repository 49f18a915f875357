"""Disks that come to a store later: more of them, and new ones for those that are lost."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from calque import faults
from calque.cli.commands.store import app
from calque.errors import AlreadyExists, CalqueError, InvalidInput, NotFound
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.embedded.add_nodes import add_nodes
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.identity import IDENTITY
from calque.store.open_project import open_project
from calque.store.serve import serve_store
from calque.store.upkeep.exit import exit_node
from calque.store.upkeep.fsck import check_store
from calque.store.upkeep.repair import RepairOptions, repair_store
from tests.forks import FORKS
from tests.store.upkeep.kept_store import KeptStore

TWO_OF_FOUR = Redundancy.of(2, 4, share_size=200)


def test_lost_disks_are_replaced(make_store: Callable[..., KeptStore]) -> None:
    """One at the path of the lost one, one elsewhere: every segment has all its pieces again, in a
    store that is open meanwhile, and nothing is wrong with it."""
    kept = make_store(TWO_OF_FOUR, nodes=4)
    for key in "abc":
        kept.upload(key)
    roots = [kept.disk(0), kept.disk(1)]
    for number in (0, 1):
        kept.lose_node(number)
    given_up = RepairOptions(gone=tuple(map(str, roots)))
    report = repair_store(kept.store, given_up)
    assert (report.repaired, report.no_room > 0) == (0, True)
    done = CliRunner().invoke(
        app, ["add-node", str(kept.store.folder), str(roots[0]), str(roots[1]) + "-new", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert sorted(each["state"] for each in json.loads(done.stdout)) == ["gone"] * 2 + ["ok"] * 4
    report = repair_store(kept.store)
    assert (report.no_room, report.queue, report.is_alarming) == (0, 0, False)
    assert report.repaired >= 3
    assert {each.state for each in report.nodes} == {"ok", "gone"}
    kept.check()
    # The path means the disk that is there now.
    assert exit_node(kept.store, str(roots[0]), dry_run=True).state == "ok"
    with closing(EmbeddedStore.open(kept.store.folder)) as again:
        assert check_store(again, young=True) == []


def test_a_server_uses_what_was_added(tmp_path: Path) -> None:
    """Nothing is restarted: pieces of clients elsewhere pass the relay to the new disk."""
    folder = tmp_path / "store"
    nodes = [str(tmp_path / "a"), str(tmp_path / "b")]
    options = StoreOptions(redundancy=Redundancy.of(1, 2), nodes=nodes)
    with closing(EmbeddedStore.create(folder, options)) as store, serve_store(store) as served:
        (before,) = [each for each in store.own_nodes() if each.root.location().endswith("/a")]
        add_nodes(folder, [str(tmp_path / "c")])
        exit_node(store, before.name)
        access = replace(store.grant(), address=served.address)
        with open_project(served.address, access=access) as project:
            project.create_bucket("bucket")
            for number in range(3):
                project.upload("bucket", f"k{number}", bytes(100_000))
                assert project.download("bucket", f"k{number}").read() == bytes(100_000)
        (added,) = [each for each in store.own_nodes() if each.root.location().endswith("/c")]
        assert len(list(added.pieces())) == 3
        assert list(before.pieces()) == []


def test_a_node_that_left_may_be_switched_off(make_store: Callable[..., KeptStore]) -> None:
    """No check of the store misses it, nor one that was given up and has nothing left to repair."""
    kept = make_store(TWO_OF_FOUR, nodes=6)
    kept.upload("a")
    exit_node(kept.store, str(kept.disk(0)))
    for number in (0, 1):
        kept.lose_node(number)
    told = {each.kind for each in check_store(kept.store, young=True)}
    assert told == {"node that does not answer"}
    repair_store(kept.store, RepairOptions(gone=(str(kept.disk(1)),)))
    kept.check()


def test_what_can_be_no_root_is_refused(plain: KeptStore, tmp_path: Path) -> None:
    """Of this store, of another, twice the same, not to be written, still there: nothing is
    changed, and no root is marked, the good ones neither."""
    folder, before = plain.store.folder, plain.store.description
    other = EmbeddedStore.create(tmp_path / "other", StoreOptions(nodes=[str(tmp_path / "theirs")]))
    other.close()
    (tmp_path / "file").write_text("")
    good = tmp_path / "good"
    for bad, error in (
        (str(plain.disk(0)), AlreadyExists),
        (str(tmp_path / "theirs"), AlreadyExists),
        (str(good) + "/", InvalidInput),
        (str(tmp_path / "file" / "x"), CalqueError),
    ):
        with pytest.raises(error):
            add_nodes(folder, [str(good), bad])
        assert not (good / IDENTITY).exists(), bad
    repair_store(plain.store, RepairOptions(gone=(str(plain.disk(0)),)))
    with pytest.raises(AlreadyExists, match="still has the disk"):
        add_nodes(folder, [str(plain.disk(0))])
    with pytest.raises(NotFound):
        add_nodes(tmp_path / "nowhere", [str(good)])
    with closing(EmbeddedStore.open(folder)) as again:
        assert again.description == before
    plain.check()


def test_a_lost_disk_is_given_up_before_another_takes_its_place(plain: KeptStore) -> None:
    """Else nobody would ask for the lost one any more, and its pieces would count for ever."""
    plain.lose_node(0)
    plain.disk(0).mkdir()
    with pytest.raises(AlreadyExists) as raised:
        add_nodes(plain.store.folder, [str(plain.disk(0))])
    assert "--gone" in str(raised.value)
    assert list(plain.disk(0).iterdir()) == []
    assert plain.node(0).id in {node.id for node in plain.store.own_nodes()}


def _add_until_killed(folder: str, root: str) -> None:
    """In another process."""
    faults.arm("add_nodes.identified:kill")
    add_nodes(folder, [root])


def test_killed_before_the_store_knew(plain: KeptStore, tmp_path: Path) -> None:
    """The store is as it was; the next try says what lies in the root, and goes on without it."""
    folder, new = plain.store.folder, str(tmp_path / "new")
    child = FORKS.Process(target=_add_until_killed, args=(str(folder), new))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    plain.check()
    with pytest.raises(AlreadyExists, match="another store") as refused:
        add_nodes(folder, [new])
    assert IDENTITY in str(refused.value.hint)
    (tmp_path / "new" / IDENTITY).unlink()
    assert len(add_nodes(folder, [new])) == 7


def test_a_description_that_cannot_be_written(
    plain: KeptStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left in the root, which can be added a moment later."""
    monkeypatch.setattr(faults, "_faults", {})
    faults.arm("add_nodes.identified:error")
    with pytest.raises(faults.InjectedFault):
        add_nodes(plain.store.folder, [str(tmp_path / "new")])
    assert not (tmp_path / "new" / IDENTITY).exists()
    faults.arm("")
    assert len(add_nodes(plain.store.folder, [str(tmp_path / "new")])) == 7
