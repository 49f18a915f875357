"""When nodes, processes and the satellite fail: clear errors, and nothing half-done is seen."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from calque.errors import (
    FailedPrecondition,
    IntegrityError,
    InvalidInput,
    NotFound,
    Unavailable,
)
from calque.operator.layers.chain import Call
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.nodes.erasure import Coder, Redundancy, share_hash
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import piece_path
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.upkeep.fsck import check_store
from tests.program import Program
from tests.store_client.conftest import TWO_OF_FOUR
from tests.store_client.world import BUCKET, OTHER, SEGMENT, World


@pytest.fixture
def spread(make_world: Callable[..., World]) -> World:
    """Two of four pieces; three make an upload good."""
    return make_world(TWO_OF_FOUR)


@contextmanager
def out_of_order(world: World, *numbers: int) -> Iterator[None]:
    """Some nodes refuse every request."""

    def dead(call: Call, proceed: Callable[[Call], Any]) -> Any:
        raise Unavailable("the node is down")

    directory = world.store.nodes
    whole = dict(directory._nodes)
    for number in numbers:
        node = directory.direct()[number]
        directory._nodes[node.id] = Node(node.id, node.root.layer(dead), node.placement)
    try:
        yield
    finally:
        directory._nodes.update(whole)


@pytest.mark.parametrize("size", [SEGMENT, 3 * SEGMENT + 7])
def test_one_node_down(spread: World, size: int) -> None:
    """Upload, download, ranges, copies and deletes go on; what waits is done when it is back."""
    content = os.urandom(size)
    spread.project.upload(BUCKET, "before", content)
    with out_of_order(spread, 1):
        spread.project.upload(BUCKET, "during", content)
        spread.project.copy_object(BUCKET, "before", OTHER, "copy")
        for bucket, key in ((BUCKET, "before"), (BUCKET, "during"), (OTHER, "copy")):
            assert spread.project.download(bucket, key).read() == content
            assert spread.project.download(bucket, key, offset=500).read() == content[500:]
        spread.project.delete_object(BUCKET, "before")
        spread.project.delete_object(OTHER, "copy")
        waiting = spread.store.endpoint.list_waiting_pieces()
        assert len(waiting) == size // SEGMENT
        assert {node for each in waiting for _, node, _ in each.pieces} == {
            spread.store.nodes.direct()[1].id
        }
    assert spread.store.endpoint.free_waiting() == size // SEGMENT
    assert spread.store.endpoint.list_waiting_pieces() == []
    assert spread.project.download(BUCKET, "during").read() == content


def test_two_nodes_down(spread: World) -> None:
    """With two pieces left downloads still work, and uploads say why they do not."""
    content = os.urandom(2 * SEGMENT)
    spread.project.upload(BUCKET, "k", content)
    with out_of_order(spread, 0, 2):
        assert spread.project.download(BUCKET, "k").read() == content
        with pytest.raises(Unavailable, match="3 are needed") as caught:
            spread.project.upload(BUCKET, "new", content)
        assert sum("the node is down" in note for note in caught.value.__notes__) == 2
    with pytest.raises(NotFound):
        spread.project.stat(BUCKET, "new")


def test_three_nodes_down(spread: World) -> None:
    """With one piece of two needed the download fails and names what is missing."""
    spread.project.upload(BUCKET, "k", os.urandom(SEGMENT))
    with (
        out_of_order(spread, 0, 1, 2),
        pytest.raises(Unavailable, match="needs 2 pieces and only 1"),
    ):
        spread.project.download(BUCKET, "k").read()


def pieces_of(world: World, number: int) -> list[Path]:
    node = world.store.nodes.direct()[number]
    folder = world.store.folder / "nodes" / str(number)
    return [folder / piece_path(stored.piece) for stored in node.pieces()]


def test_damaged_pieces_are_passed_over(spread: World) -> None:
    """Flipped bits on one node, a truncated piece on another: the bytes are right all the same."""
    content = os.urandom(2 * SEGMENT)
    spread.project.upload(BUCKET, "k", content)
    saved = {file: file.read_bytes() for number in (0, 3) for file in pieces_of(spread, number)}
    for file in pieces_of(spread, 0):
        file.write_bytes(bytes([saved[file][0] ^ 255]) + saved[file][1:])
    for file in pieces_of(spread, 3):
        file.write_bytes(saved[file][:-20])
    assert spread.project.download(BUCKET, "k").read() == content
    kinds = {finding.kind for finding in check_store(spread.store, young=True)}
    assert kinds == {"piece of the wrong size"}
    for file, piece in saved.items():
        file.write_bytes(piece)


def test_a_lying_node_is_found_out(spread: World) -> None:
    """A piece changed together with its hashes: the cipher notices, and other pieces are used."""
    content = os.urandom(2 * SEGMENT + 300)
    spread.project.upload(BUCKET, "k", content)
    node = spread.store.nodes.direct()[0]
    saved = {}
    for stored in node.pieces():
        file = spread.store.folder / "nodes" / "0" / piece_path(stored.piece)
        saved[file] = file.read_bytes()
        unit = Coder(TWO_OF_FOUR).unit_size(TWO_OF_FOUR.stripe_size)
        share = bytearray(saved[file][: unit - 16])
        share[-1] ^= 1
        forged = bytes(share) + share_hash(stored.piece, 0, bytes(share))
        file.write_bytes(forged + saved[file][unit:])
    assert spread.project.download(BUCKET, "k").read() == content
    assert (
        spread.project.download(BUCKET, "k", offset=900, length=300).read() == (content[900:1200])
    )
    for file, piece in saved.items():
        file.write_bytes(piece)


def test_fsck_finds_what_is_wrong_with_pieces(plain_world: World) -> None:
    """Missing, resized and orphaned pieces are each reported; a young orphan only when asked."""
    plain_world.project.upload(BUCKET, "k", os.urandom(3 * SEGMENT))
    first, second, _ = pieces_of(plain_world, 0)
    kept = {file: file.read_bytes() for file in (first, second)}
    first.unlink()
    second.write_bytes(b"short")
    stray = first.with_name("ab" * 30)
    stray.write_bytes(b"stray")
    kinds = sorted(finding.kind for finding in check_store(plain_world.store, young=True))
    assert kinds == ["missing piece", "orphaned piece", "piece of the wrong size"]
    later = sorted(finding.kind for finding in check_store(plain_world.store))
    assert later == ["missing piece", "piece of the wrong size"]
    with pytest.raises((Unavailable, IntegrityError)):
        plain_world.project.download(BUCKET, "k").read()
    stray.unlink()
    for file, piece in kept.items():
        file.write_bytes(piece)


UPLOADER = """
import sys, time
from calque.store.open_project import open_project
from tests.store_client.world import SMALL

project = open_project(sys.argv[1], settings=SMALL)

def slowly():
    for number in range(1000):
        yield bytes([number % 256]) * 700
        if number == 20:
            print("midway", flush=True)
        if number > 20:
            time.sleep(0.01)

project.upload("photos", "k", slowly())
"""


def test_a_killed_upload_leaves_nothing_visible(tmp_path: Path) -> None:
    """SIGKILL in the middle: the old object stands, the rest is a pending upload to sweep."""
    folder = tmp_path / "store"
    with open_project(folder) as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", b"old")
    with Program(UPLOADER, folder) as uploader:
        assert uploader.stdout.readline() == "midway\n"
        time.sleep(0.1)
        uploader.kill()
    with open_project(folder) as project:
        assert project.download(BUCKET, "k").read() == b"old"
        assert [entry.key for entry in project.list_objects(BUCKET)] == ["k"]
        (pending,) = project.list_pending(BUCKET)
        project.resume_multipart(BUCKET, pending.key, pending.upload_id).abort()
    store = EmbeddedStore.open(folder)
    try:
        # The piece that was being committed at the kill may be left, and fsck says so.
        findings = check_store(store, young=True)
        assert {finding.kind for finding in findings} <= {"orphaned piece"}
        assert len(findings) <= 4
        assert check_store(store) == []
    finally:
        store.close()


COPIER = """
import sys
from calque.store.open_project import open_project

project = open_project(sys.argv[1])
print("ready", flush=True)
number = 0
while True:
    project.copy_object("photos", "k", "photos", f"copy{number % 7}")
    project.delete_object("photos", f"copy{(number + 3) % 7}")
    number += 1
"""


def test_killed_copies_are_whole_or_absent(tmp_path: Path) -> None:
    """A process that copies and deletes is killed at any moment: every survivor downloads."""
    folder, content = tmp_path / "store", os.urandom(100_000)
    with open_project(folder) as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", content)
    for round_number in range(3):
        with Program(COPIER, folder) as copier:
            assert copier.stdout.readline() == "ready\n"
            time.sleep(0.05 + 0.07 * round_number)
            copier.kill()
        with open_project(folder) as project:
            for entry in project.list_objects(BUCKET):
                assert project.download(BUCKET, entry.key).read() == content
    store = EmbeddedStore.open(folder)
    try:
        assert check_store(store, young=True) == []
    finally:
        store.close()


def test_makers_of_one_folder_agree(tmp_path: Path) -> None:
    """Processes that open one new folder at once get one store."""
    program = (
        "import sys; from calque.store.open_project import open_project;"
        "p = open_project(sys.argv[1]); print(p.session.limits.project_id.hex())"
    )
    with ExitStack() as held:
        started = [held.enter_context(Program(program, tmp_path / "store")) for _ in range(3)]
        answers = {process.communicate()[0] for process in started}
        assert len(answers) == 1
        assert [process.returncode for process in started] == [0, 0, 0]


def test_the_folder_may_be_moved(tmp_path: Path) -> None:
    """What lies inside a store is named relative to it."""
    with open_project(tmp_path / "here") as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", bytes(10_000))
    (tmp_path / "here").rename(tmp_path / "there")
    with open_project(tmp_path / "there") as project:
        assert project.download(BUCKET, "k").read() == bytes(10_000)
        project.upload(BUCKET, "l", bytes(10_000))
    assert not (tmp_path / "here").exists()


DAMAGE = {
    "empty": "",
    "not json": "{",
    "version 9": '{"version": 9}',
    "no version": "{}",
    "list": "[]",
    "nothing in it": '{"version": 1}',
    "wrong types": '{"version": 1, "nodes": [5], "redundancy": [], "api_key": 5, "check": 1}',
}


@pytest.mark.parametrize("file", ["store.json", "access.json"])
@pytest.mark.parametrize("text", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_description_is_said_to_be_so(tmp_path: Path, file: str, text: str) -> None:
    """A store whose description cannot be read is not opened, and not overwritten."""
    open_project(tmp_path / "store").close()
    (tmp_path / "store" / file).write_text(text)
    with pytest.raises(InvalidInput, match=file):
        open_project(tmp_path / "store")
    assert (tmp_path / "store" / file).read_text() == text


def test_a_store_of_other_piece_names_is_refused(tmp_path: Path) -> None:
    """Its pieces would all seem to be missing; nothing is touched, and the reason is said."""
    open_project(tmp_path / "store").close()
    file = tmp_path / "store" / "store.json"
    text = file.read_text().replace('"piece_names": 2,', "")
    assert text != file.read_text()
    file.write_text(text)
    with pytest.raises(FailedPrecondition, match="scheme 1"):
        open_project(tmp_path / "store")
    assert file.read_text() == text


def test_a_store_needs_a_folder(tmp_path: Path) -> None:
    """A file in the way is said to be one, and stays as it is."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="folder"):
        open_project(tmp_path / "file")
    with pytest.raises(InvalidInput, match="under a file"):
        open_project(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "mine"


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """An upload and a download of 300 MiB take far less memory than that."""
    program = """
import sys
from calque.store.open_project import open_project
from tests.peak_memory import peak_mebibytes
project = open_project(sys.argv[1])
project.create_bucket("photos")
chunk = bytes(1 << 20)
before = peak_mebibytes()
project.upload("photos", "k", (chunk for _ in range(300)))
assert sum(map(len, project.download("photos", "k"))) == 300 << 20
after = peak_mebibytes()
project.delete_object("photos", "k")
print(after - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "store")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert int(done.stdout) < 150


def use(project: Project) -> None:
    """Everything once."""
    project.create_bucket(BUCKET, exist_ok=True)
    project.upload(BUCKET, "k", bytes(10_000))
    project.copy_object(BUCKET, "k", BUCKET, "l")


def test_other_nodes(tmp_path: Path) -> None:
    """Nodes may lie anywhere an Operator reaches."""
    nodes = [str(tmp_path / "disk1"), f"fs://{tmp_path / 'disk2'}", str(tmp_path / "disk3")]
    options = StoreOptions(redundancy=TWO_OF_FOUR, nodes=[*nodes, "memory://spare"])
    with open_project(tmp_path / "store", options=options) as project:
        use(project)
        assert project.download(BUCKET, "l").read() == bytes(10_000)
    assert (tmp_path / "disk2" / "pieces").is_dir()
    assert not (tmp_path / "store" / "nodes").exists()


WORKER = """
import hashlib, os, random, sys
from calque.errors import ConditionNotMatch, NotFound
from calque.store.open_project import open_project
from tests.store_client.world import SMALL

random.seed(sys.argv[2])
with open_project(sys.argv[1], settings=SMALL) as project:
    for _ in range(40):
        one, two = (f"k{random.randrange(4)}" for _ in range(2))
        try:
            match random.randrange(5):
                case 0 | 1:
                    body = os.urandom(random.choice([10, 900, 2500]))
                    digest = hashlib.sha256(body).hexdigest()
                    project.upload("photos", one, body, metadata={"sha256": digest})
                case 2:
                    project.copy_object("photos", one, "photos", two)
                case 3:
                    project.delete_object("photos", one)
                case 4 if one != two:
                    project.move_object("photos", one, "photos", two)
        except (NotFound, ConditionNotMatch):
            pass  # another process was quicker
"""


def test_processes_share_a_store(tmp_path: Path, any_database: str | None) -> None:
    """Processes that overwrite, copy, move and delete the same four keys lose and mix nothing."""
    folder = tmp_path / "store"
    store = EmbeddedStore.create(
        folder, StoreOptions(redundancy=Redundancy(share_size=100), database=any_database)
    )
    store.close()
    with open_project(folder) as project:
        project.create_bucket(BUCKET)
    with ExitStack() as held:
        workers = [held.enter_context(Program(WORKER, folder, seed)) for seed in range(3)]
        assert [worker.wait() for worker in workers] == [0, 0, 0]
    with open_project(folder) as project:
        for entry in project.list_objects(BUCKET, with_metadata=True):
            body = project.download(BUCKET, entry.key).read()
            assert hashlib.sha256(body).hexdigest() == entry.metadata["sha256"]  # type: ignore[union-attr]
    store = EmbeddedStore.open(folder)
    try:
        assert check_store(store, young=True) == []
    finally:
        store.close()
