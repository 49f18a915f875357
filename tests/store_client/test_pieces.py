"""Pieces on real folders: any k of n, the fastest, and never a wrong byte."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import Aborted, IntegrityError, InvalidInput, Unavailable
from calque.operator import Operator
from calque.operator.layers.chain import Call
from calque.store.nodes.delete import PieceDeletion
from calque.store.nodes.download import Source, download_stripes
from calque.store.nodes.erasure import Coder, Redundancy
from calque.store.nodes.expire import delete_expired_pieces
from calque.store.nodes.node import Node, NodeDirectory
from calque.store.nodes.pieces import PIECE_NAMES, piece_id, piece_of_path, piece_path
from calque.store.nodes.units import Stripes
from calque.store.nodes.upload import Patience, Target, upload_pieces

ROOT_PIECE = bytes(range(32))
QUICK = Patience(least=0.05, share=0)


def node_at(folder: Path, number: int, *layers: Any) -> Node:
    root = Operator.from_uri(f"{folder / str(number)}", durable=False)
    Node(bytes([number]) * 32, root).identity.write()
    for layer in layers:
        root = root.layer(layer)
    return Node(bytes([number]) * 32, root)


def nodes_at(folder: Path, count: int) -> list[Node]:
    return [node_at(folder, number) for number in range(count)]


def targets(nodes: list[Node]) -> list[Target]:
    return [Target(number, node) for number, node in enumerate(nodes)]


def sources(nodes: list[Node]) -> list[Source]:
    return [Source(number, node) for number, node in enumerate(nodes)]


def download(nodes: list[Node], coder: Coder, size: int, patience: float = 0.25) -> bytes:
    stripes = Stripes.of_range(coder, size, 0, size)
    return b"".join(download_stripes(sources(nodes), stripes, ROOT_PIECE, patience=patience))


def piece_file(folder: Path, number: int) -> Path:
    piece = piece_id(ROOT_PIECE, bytes([number]) * 32, number)
    return folder / str(number) / piece_path(piece)


def dead(call: Call, proceed: Callable[[Call], Any]) -> Any:
    raise Unavailable("connection refused")


class Stuck:
    """A layer that lets nothing through until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def __call__(self, call: Call, proceed: Callable[[Call], Any]) -> Any:
        self.released.wait(30)
        return proceed(call)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    layer = Stuck()
    yield layer
    layer.released.set()


FOUR_OF_SIX = Coder(Redundancy.of(4, 6, share_size=100))
SIZES = [1, 99, 400, 401, 799, 800, 4321]


@pytest.mark.parametrize("coder", [FOUR_OF_SIX, Coder(Redundancy.of(1, 1, share_size=100))])
@pytest.mark.parametrize("size", SIZES)
def test_bytes_come_back(tmp_path: Path, coder: Coder, size: int) -> None:
    """Whatever the size, what is uploaded is downloaded, and pieces have the size foretold."""
    nodes = nodes_at(tmp_path, coder.redundancy.total)
    data = os.urandom(size)
    held = upload_pieces(targets(nodes), coder, ROOT_PIECE, [data[:50], data[50:]])
    assert len(held) == len(nodes)
    assert download(nodes, coder, size) == data
    assert all(
        piece_file(tmp_path, number).stat().st_size == coder.piece_size(size)
        for number in range(len(nodes))
    )


def test_one_of_one_costs_only_the_hashes(tmp_path: Path) -> None:
    """With one node a piece is the encrypted bytes, with 16 bytes a stripe beside them."""
    coder = Coder(Redundancy.of(1, 1, share_size=65536))
    data = os.urandom(200_000)
    upload_pieces(targets(nodes_at(tmp_path, 1)), coder, ROOT_PIECE, [data])
    content = piece_file(tmp_path, 0).read_bytes()
    assert content[:65536] == data[:65536]
    assert len(content) == len(data) + 16 * 4


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 3000), st.data())
def test_any_shares_give_the_others(
    required: int, spare: int, size: int, draw: st.DataObject
) -> None:
    """Whichever shares are left, the missing ones come out as they were encoded."""
    coder = Coder(Redundancy.of(required, required + spare))
    numbers = range(required + spare)
    shares = coder.encode(os.urandom(size))
    left = draw.draw(st.permutations(numbers))[:required]
    missing = draw.draw(st.lists(st.sampled_from(numbers), unique=True))
    made = coder.rebuild({number: shares[number] for number in left}, missing)
    assert made == {number: shares[number] for number in missing}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 2000), st.data())
def test_any_run_of_stripes(
    tmp_path_factory: pytest.TempPathFactory, size: int, draw: st.DataObject
) -> None:
    """A range of encrypted bytes lies in the stripes that are said to hold it."""
    folder = tmp_path_factory.mktemp("run")
    nodes, data = nodes_at(folder, 6), os.urandom(size)
    upload_pieces(targets(nodes), FOUR_OF_SIX, ROOT_PIECE, [data])
    offset = draw.draw(st.integers(0, size - 1))
    length = draw.draw(st.integers(1, size - offset))
    run = Stripes.of_range(FOUR_OF_SIX, size, offset, length)
    got = b"".join(download_stripes(sources(nodes), run, ROOT_PIECE))
    start = offset - run.offset
    assert got[start : start + length] == data[offset : offset + length]


@pytest.mark.parametrize("missing", [(0, 1), (4, 5), (1, 3), (2,)])
def test_any_k_pieces_are_enough(tmp_path: Path, missing: tuple[int, ...]) -> None:
    """Lost pieces, of data or parity, do not matter while k are left."""
    nodes, data = nodes_at(tmp_path, 6), os.urandom(3000)
    upload_pieces(targets(nodes), FOUR_OF_SIX, ROOT_PIECE, [data])
    for number in missing:
        piece_file(tmp_path, number).unlink()
    assert download(nodes, FOUR_OF_SIX, 3000) == data


def test_too_few_pieces_are_an_error_that_names_them(tmp_path: Path) -> None:
    """With k-1 pieces left the error counts, and names every node that failed."""
    nodes, data = nodes_at(tmp_path, 6), os.urandom(3000)
    upload_pieces(targets(nodes), FOUR_OF_SIX, ROOT_PIECE, [data])
    for number in (0, 2, 4):
        piece_file(tmp_path, number).unlink()
    with pytest.raises(Unavailable, match="needs 4 pieces and only 3") as caught:
        download(nodes, FOUR_OF_SIX, 3000)
    assert len(caught.value.__notes__) == 3
    assert "does not have piece" in caught.value.__notes__[0]


@pytest.mark.parametrize("damage", ["flip", "truncate", "cut at a unit", "swap units", "empty"])
def test_a_damaged_piece_is_found_and_another_used(tmp_path: Path, damage: str) -> None:
    """Rot, truncation and units in the wrong place are seen before they are used."""
    nodes, data = nodes_at(tmp_path, 6), os.urandom(3000)
    upload_pieces(targets(nodes), FOUR_OF_SIX, ROOT_PIECE, [data])
    for number in (0, 3):
        hurt(piece_file(tmp_path, number), damage)
    assert download(nodes, FOUR_OF_SIX, 3000) == data
    hurt(piece_file(tmp_path, 5), damage)
    with pytest.raises(IntegrityError, match="only 3") as caught:
        download(nodes, FOUR_OF_SIX, 3000)
    assert all("damaged" in note or "truncated" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("damage", ["flip", "truncate", "cut at a unit", "swap units", "empty"])
def test_one_damaged_piece_of_one_is_an_integrity_error(tmp_path: Path, damage: str) -> None:
    """Where there is no other piece the damage is said plainly."""
    coder = Coder(Redundancy.of(1, 1, share_size=180))
    nodes, data = nodes_at(tmp_path, 1), os.urandom(3000)
    upload_pieces(targets(nodes), coder, ROOT_PIECE, [data])
    hurt(piece_file(tmp_path, 0), damage)
    with pytest.raises(IntegrityError, match=r"damaged|truncated"):
        download(nodes, coder, 3000)


def test_a_missing_piece_of_one_is_not_a_missing_object(tmp_path: Path) -> None:
    """Whoever reads an object must not take a lost piece, or a disk not mounted, for NotFound."""
    coder = Coder(Redundancy.of(1, 1, share_size=180))
    nodes = nodes_at(tmp_path, 1)
    upload_pieces(targets(nodes), coder, ROOT_PIECE, [os.urandom(3000)])
    piece_file(tmp_path, 0).unlink()
    with pytest.raises(Unavailable, match="does not have piece") as caught:
        download(nodes, coder, 3000)
    assert "fsck" in str(caught.value)


def hurt(file: Path, damage: str) -> None:
    content = bytearray(file.read_bytes())
    unit = 196
    if damage == "flip":
        content[len(content) // 2] ^= 1
    elif damage == "truncate":
        del content[-1:]
    elif damage == "cut at a unit":
        del content[unit:]
    elif damage == "swap units":
        content[:unit], content[unit : 2 * unit] = content[unit : 2 * unit], content[:unit]
    else:
        content.clear()
    file.write_bytes(content)


def test_the_success_threshold_is_enough(tmp_path: Path) -> None:
    """5 of 6 nodes make the upload good; the dead one holds nothing and is not listed."""
    nodes = [*nodes_at(tmp_path, 5), node_at(tmp_path, 5, dead)]
    data = os.urandom(3000)
    held = upload_pieces(targets(nodes), FOUR_OF_SIX, ROOT_PIECE, [data])
    assert [target.number for target in held] == [0, 1, 2, 3, 4]
    assert download(nodes, FOUR_OF_SIX, 3000) == data


def test_below_the_threshold_nothing_stays(tmp_path: Path) -> None:
    """With too few nodes the upload fails, names them, and the others are clean again."""
    nodes = [*nodes_at(tmp_path, 4), node_at(tmp_path, 4, dead), node_at(tmp_path, 5, dead)]
    with pytest.raises(Unavailable, match="only 4 of 6") as caught:
        upload_pieces(targets(nodes), FOUR_OF_SIX, ROOT_PIECE, [os.urandom(900_000)])
    assert len(caught.value.__notes__) == 2
    wait_for_threads()
    assert [list(node.pieces()) for node in nodes[:4]] == [[], [], [], []]


def test_a_slow_node_is_left_behind(tmp_path: Path, stuck: Stuck) -> None:
    """An upload does not wait for a node that hangs, and what that node stores late goes again."""
    nodes = [*nodes_at(tmp_path, 5), node_at(tmp_path, 5, stuck)]
    data = os.urandom(100_000)
    held = upload_pieces(targets(nodes), FOUR_OF_SIX, ROOT_PIECE, [data], patience=QUICK)
    assert [target.number for target in held] == [0, 1, 2, 3, 4]
    stuck.released.set()
    wait_for_threads()
    assert list(nodes[5].pieces()) == []


def test_a_download_takes_the_fastest(tmp_path: Path, stuck: Stuck) -> None:
    """Two nodes that hang are not waited for: spare pieces are read instead."""
    plain, data = nodes_at(tmp_path, 6), os.urandom(100_000)
    upload_pieces(targets(plain), FOUR_OF_SIX, ROOT_PIECE, [data])
    nodes = [node_at(tmp_path, 0, stuck), node_at(tmp_path, 1, stuck), *plain[2:]]
    assert download(nodes, FOUR_OF_SIX, 100_000, patience=0.02) == data
    assert not stuck.released.is_set()


def test_an_error_of_the_source_passes_through(tmp_path: Path) -> None:
    """When the bytes to upload fail, that very error comes out and no piece stays."""

    def failing() -> Iterator[bytes]:
        yield bytes(5000)
        raise Aborted("the caller changed its mind")

    for coder in (FOUR_OF_SIX, Coder(Redundancy.of(1, 1, share_size=100))):
        nodes = nodes_at(tmp_path, coder.redundancy.total)
        with pytest.raises(Aborted, match="changed its mind"):
            upload_pieces(targets(nodes), coder, ROOT_PIECE, failing())
        wait_for_threads()
        assert [list(node.pieces()) for node in nodes] == [[] for _ in nodes]


def wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("piece-"):
            thread.join(60)


def test_too_few_nodes_are_refused_at_once(tmp_path: Path) -> None:
    """A segment that cannot succeed is not begun."""
    with pytest.raises(InvalidInput, match="5 nodes must take a piece and only 3"):
        upload_pieces(targets(nodes_at(tmp_path, 3)), FOUR_OF_SIX, ROOT_PIECE, [b"x"])


@pytest.mark.parametrize(
    "wrong", [(0, 1, 1, 1), (3, 2, 3, 4), (2, 2, 2, 2), (2, 3, 5, 4), (30, 31, 32, 33)]
)
def test_bad_redundancies_are_refused(wrong: tuple[int, int, int, int]) -> None:
    """Thresholds out of order, and schemes that protect from nothing, are said to be so."""
    required, repair, success, total = wrong
    with pytest.raises(InvalidInput):
        Redundancy(required=required, repair=repair, success=success, total=total)


def test_a_node_collects_what_has_expired(tmp_path: Path) -> None:
    """A node deletes by its own clock, after the hour and the grace, and nothing else."""
    node = node_at(tmp_path, 0)
    now = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    ids = sorted(piece_id(ROOT_PIECE, node.id, n) for n in range(4))
    for piece, expires in zip(
        ids, [None, now - timedelta(hours=5), now - timedelta(minutes=40), now], strict=True
    ):
        node.write(piece, [b"x"], expires)
    assert delete_expired_pieces(node, now) == 1
    assert [stored.piece for stored in node.pieces()] == [ids[0], ids[2], ids[3]]
    assert delete_expired_pieces(node, now + timedelta(hours=3)) == 2
    assert [stored.piece for stored in node.pieces()] == [ids[0]]
    assert delete_expired_pieces(node, now + timedelta(days=99)) == 0


def test_a_silent_node_is_asked_once(tmp_path: Path) -> None:
    """In one round of deleting: its pieces are left, those of other nodes go."""
    asked: list[str] = []

    def silent(call: Call, proceed: Callable[[Call], Any]) -> Any:
        asked.append(call.verb)
        raise Unavailable("no answer")

    alive, away = node_at(tmp_path, 0), node_at(tmp_path, 1, silent)
    roots = [bytes([n]) * 32 for n in range(3)]
    for root in roots:
        alive.write(piece_id(root, alive.id, 0), [b"x"], None)
    deletion = PieceDeletion(NodeDirectory([alive, away]))
    placed = ((0, alive.id, "here"), (1, away.id, "there"))
    assert [deletion.delete_pieces(root, placed) for root in roots] == [placed[1:]] * 3
    assert asked == ["read"]  # of its identity
    assert list(alive.pieces()) == []
    assert PieceDeletion(NodeDirectory([alive])).delete_pieces(roots[0], placed[:1]) == ()


def test_only_pieces_are_pieces(tmp_path: Path) -> None:
    """Files that somebody put beside the pieces, and names of another version, are passed over."""
    node = node_at(tmp_path, 0)
    piece = piece_id(b"root", b"n" * 32, 0)
    node.write(piece, [b"x"], None)
    node.write(bytes(32), [b"x"], None)
    (tmp_path / "0" / "pieces" / "readme").write_text("hello")
    (tmp_path / "0" / "pieces" / "02" / "zz").write_text("hello")
    assert [stored.piece for stored in node.pieces()] == [piece]
    assert piece_of_path(piece_path(piece)) == piece


def test_names_of_pieces_say_how_they_were_derived() -> None:
    """Version first; any change of root, node or number gives another name, and none is guessed."""
    names = {
        piece_id(root, node, number)
        for root in (b"r" * 32, b"s" * 32)
        for node in (b"n" * 32, b"m" * 32)
        for number in (0, 1, 256)
    }
    assert len(names) == 12
    assert {name[0] for name in names} == {PIECE_NAMES}
    assert (
        piece_id(b"r" * 32, b"n" * 32, 0)
        == bytes((2,))
        + hashlib.blake2b(b"n" * 32 + bytes(4), key=b"r" * 32, digest_size=31).digest()
    )
