"""Writes through failures."""

import threading
from collections.abc import Iterator

import pytest

from calque.errors import ConditionNotMatch, Unavailable
from calque.operator import Operator
from calque.operator.services.azblob import write
from calque.values import KIB
from tests.operator.services.azblob.conftest import Account
from tests.servers.proxy import Fault, FaultProxy, Reply

PIECE = 32 * KIB
DATA = bytes(range(256)) * 500 + b"tail"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few bytes."""
    monkeypatch.setattr(write, "PIECE", PIECE)


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_sizes_around_a_piece(op: Operator, account: Account, size: int) -> None:
    """One request up to a piece, blocks above it."""
    assert op.write("x", DATA[:size]).size == size
    assert op.read("x") == DATA[:size]
    committed, _ = account.client().get_blob_client("x").get_block_list("all")
    assert len(committed) == (-(-size // PIECE) if size > PIECE else 0)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(method="PUT", drop=True),
        Fault(method="PUT", after=1, drop=True, acted=True),
        Fault(method="PUT", after=1, times=3, reply=Reply(503)),
        Fault(method="PUT", contains="comp=blocklist", drop=True, acted=True),
        Fault(method="PUT", contains="comp=blocklist", cut=1),
    ],
)
def test_a_large_write_survives(
    op: Operator, shaky: Operator, proxy: FaultProxy, fault: Fault
) -> None:
    """Lost requests, lost answers, refusals: the bytes are whole and made once."""
    proxy.add(fault)
    made = shaky.write("x", DATA, if_not_exists=True)
    assert fault.hits
    assert op.read("x") == DATA
    assert op.stat("x").etag == made.etag


def test_a_small_write_knows_its_own_blob(op: Operator, shaky: Operator, proxy: FaultProxy) -> None:
    """After a lost answer if_not_exists finds what it made; another's blob is refused."""
    proxy.add(Fault(method="PUT", drop=True, acted=True))
    made = shaky.write("x", b"mine", if_not_exists=True)
    assert (op.read("x"), op.stat("x").etag) == (b"mine", made.etag)
    assert dict(made.user) == {}
    proxy.add(Fault(method="PUT", drop=True))
    with pytest.raises(ConditionNotMatch):
        shaky.write("x", b"other", if_not_exists=True)


def test_a_write_that_cannot_go_on_leaves_nothing(
    op: Operator, shaky: Operator, proxy: FaultProxy
) -> None:
    """The error is raised, staged blocks are discarded."""
    proxy.add(Fault(method="PUT", after=2, times=None, reply=Reply(500)))
    with pytest.raises(Unavailable):
        shaky.write("x", DATA)
    assert not op.exists("x")
    assert list(op.leftovers()) == []


def test_another_write_in_between(op: Operator, shaky: Operator, proxy: FaultProxy) -> None:
    """The service then says InvalidBlockList: the other stands, and the error says so."""
    gone = Reply(400, {"x-ms-error-code": "InvalidBlockList"})
    proxy.add(Fault(method="PUT", contains="comp=blocklist", times=2, reply=gone))
    with pytest.raises(Unavailable, match="written meanwhile"):
        shaky.write("x", DATA)
    with pytest.raises(ConditionNotMatch, match="written meanwhile"):
        shaky.write("x", DATA, if_not_exists=True)
    assert not op.exists("x")


def test_blocks_in_flight_and_memory_are_bounded(op: Operator) -> None:
    """At most ``concurrent`` requests at once, and few pieces ahead of them."""
    lock, flying, most, sent, ahead = threading.Lock(), 0, 0, 0, 0

    def layer(call, proceed):  # type: ignore[no-untyped-def]
        nonlocal flying, most, sent
        if call.verb != "write_part":
            return proceed(call)
        with lock:
            flying += 1
            most = max(most, flying)
        try:
            return proceed(call)
        finally:
            with lock:
                flying -= 1
                sent += PIECE

    def chunks() -> Iterator[bytes]:
        nonlocal ahead
        for number in range(40):
            ahead = max(ahead, (number + 1) * PIECE - sent)
            yield bytes(PIECE)

    op.layer(layer).write("x", chunks(), concurrent=3)
    assert 1 <= most <= 3
    assert ahead <= 6 * PIECE
    assert op.stat("x").size == 40 * PIECE
