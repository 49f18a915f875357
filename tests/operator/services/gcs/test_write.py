"""Writes through failures: sessions that go on where they stopped."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from calque.errors import CalqueError, ConditionNotMatch, PermissionDenied
from calque.operator import Operator
from calque.operator.services.gcs import write
from calque.values import KIB
from tests.servers.gcs_fake import GcsFake
from tests.servers.gcs_fake.replies import Reply as FakeReply
from tests.servers.gcs_fake.replies import Request
from tests.servers.gcs_fake.uploads import Uploads
from tests.servers.proxy import Fault, FaultProxy, Reply

PIECE = 256 * KIB
DATA = bytes(range(256)) * (3 * KIB) + b"tail"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of few bytes."""
    monkeypatch.setattr(write, "PIECE", PIECE)


@pytest.mark.parametrize(
    "size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 1, 3 * PIECE]
)
def test_sizes_around_a_piece(near: Operator, fake: GcsFake, size: int) -> None:
    """One request up to a piece, a session above it."""
    made = near.write("x", DATA[:size])
    assert near.read("x") == DATA[:size]
    assert made.size == size
    assert fake.world.journal.count("insert resumable") == (1 if size > PIECE else 0)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(method="PUT", drop=True),
        Fault(method="PUT", drop=True, acted=True),
        Fault(method="PUT", after=1, times=3, reply=Reply(503)),
        Fault(method="PUT", after=3, drop=True, acted=True),
        Fault(method="PUT", after=3, cut=5),
        Fault(method="POST", reply=Reply(500)),
    ],
)
def test_a_session_survives(shaky: Operator, proxy: FaultProxy, fault: Fault) -> None:
    """Lost requests, lost answers, refusals: the bytes are whole and made once."""
    proxy.add(fault)
    made = shaky.write("x", DATA, if_not_exists=True)
    assert fault.hits
    assert shaky.read("x") == DATA
    assert shaky.stat("x").etag == made.etag


def test_a_small_write_knows_its_own_object(shaky: Operator, proxy: FaultProxy) -> None:
    """After a lost answer if_not_exists finds what it made; another's object is refused."""
    proxy.add(Fault(method="POST", drop=True, acted=True))
    made = shaky.write("x", b"mine", if_not_exists=True)
    assert (shaky.read("x"), shaky.stat("x").etag) == (b"mine", made.etag)
    assert dict(made.user) == {}
    proxy.add(Fault(method="POST", drop=True))
    with pytest.raises(ConditionNotMatch):
        shaky.write("x", b"other", if_not_exists=True)


def test_a_producer_that_fails_cancels_its_session(near: Operator, fake: GcsFake) -> None:
    """The session is gone, the error is the producer's own."""

    def break_off() -> Iterator[bytes]:
        yield DATA
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        near.write("x", break_off())
    assert fake.world.journal.count("cancel") == 1
    assert not fake.routes.uploads.sessions
    assert not near.exists("x")


def test_a_cancel_that_fails_is_noted(shaky: Operator, proxy: FaultProxy) -> None:
    """The first error stands and says what was left."""
    proxy.add(Fault(method="PUT", reply=Reply(403)))
    proxy.add(Fault(method="DELETE", times=None, drop=True))
    with pytest.raises(PermissionDenied) as raised:
        shaky.write("x", DATA)
    assert "week" in raised.value.__notes__[0]


def test_few_pieces_are_held(near: Operator) -> None:
    """A producer is never more than three pieces ahead of what the service has."""
    produced, sent, most = 0, 0, 0

    def layer(call, proceed):  # type: ignore[no-untyped-def]
        nonlocal sent
        answer = proceed(call)
        sent += PIECE if call.verb == "write_part" else 0
        return answer

    def chunks() -> Iterator[bytes]:
        nonlocal produced, most
        for _ in range(40):
            produced += 64 * KIB
            most = max(most, produced - sent)
            yield bytes(64 * KIB)

    near.layer(layer).write("x", chunks())
    assert most <= 3 * PIECE


class Damaging(Uploads):
    """A service that gets other bytes than were sent."""

    def insert(self, request: Request, bucket: str) -> FakeReply:
        damaged = replace(request, body=request.body.replace(b"good", b"evil"))
        return super().insert(damaged, bucket)


def test_bytes_that_were_damaged_on_the_way(near: Operator, fake: GcsFake) -> None:
    """A checksum travels with the bytes; the service refuses others and nothing appears."""
    fake.routes.uploads = Damaging(fake.world)
    with pytest.raises(CalqueError, match="CRC32C"):
        near.write("x", b"good")
    assert not near.exists("x")
