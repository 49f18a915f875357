"""Copies between two services, from and to every service."""

from collections.abc import Callable

import pytest

from calque.errors import ConditionNotMatch, IntegrityError, Unavailable, Unsupported
from calque.operator import Operator
from calque.operator.options import Streaming
from tests.operator.behaviour.case import Case, content
from tests.operator.recorder import Hook


@pytest.fixture
def away() -> Operator:
    """A service that no other can copy to by itself."""
    return Operator.from_uri("memory://")


def test_without_leave_no_byte_passes_through_the_client(op: Operator, away: Operator) -> None:
    """Unsupported that tells of stream=True; nothing is written."""
    op.write("from", b"data")
    with pytest.raises(Unsupported, match="stream=True"):
        op.copy("from", "to", into=away)
    assert not away.exists("to")


def test_bytes_stream_when_asked(op: Operator, away: Operator, case: Case) -> None:
    """Both ways, at every size; the copier says which way the bytes went; steps sum up."""
    for size in (0, 1, case.large):
        data = content(size)
        op.write("from", data)
        copier = op.copier("from", "to", into=away, stream=True)
        assert copier.route == "through the client"
        steps = list(copier)
        assert sum(steps) == size
        assert copier.metadata.size == size
        assert away.read("to") == data
        back = away.copier("to", "back", into=op, stream=True)
        assert sum(back) == size
        assert op.read("back") == data
    assert list(op.leftovers()) == []


def test_a_service_copies_by_itself_where_it_can(
    op: Operator, other: Operator, need: Callable[..., None]
) -> None:
    """stream="auto" is leave, not an order."""
    need("copy")
    op.write("from", b"data")
    copier = op.copier("from", "to", into=other, stream="auto")
    assert copier.route == "server-side"
    copier.run()


def test_an_order_to_stream_is_obeyed(op: Operator, other: Operator, case: Case) -> None:
    """stream=True takes the bytes through the client although the service could copy by itself."""
    for size in (0, case.large):
        data = content(size)
        op.write("from", data)
        copier = op.copier("from", "to", into=other, stream=True)
        assert copier.route == "through the client"
        copier.run()
        assert other.read("to") == data


@pytest.mark.parametrize("stream", [True, "auto"])
def test_conditions_hold_whatever_way_is_taken(
    op: Operator, other: Operator, stream: Streaming
) -> None:
    """A target that exists, or is another one, stays as it is; or the copy is refused."""
    op.write("from", b"data")
    other.write("to", b"old")
    with pytest.raises((ConditionNotMatch, Unsupported)):
        op.copy("from", "to", into=other, stream=stream, if_not_exists=True)
    with pytest.raises((ConditionNotMatch, Unsupported)):
        op.copy("from", "to", into=other, stream=stream, if_match="another")
    assert other.read("to") == b"old"


def test_a_listed_entry_streams_with_its_metadata(
    op: Operator, away: Operator, need: Callable[..., None]
) -> None:
    """A listing tells no headers; a stream from its entry carries them all the same."""
    need("user_metadata")
    op.write("from", b"data", content_type="text/x", user={"k": "v"})
    op.copy(next(op.list("from")), "to", into=away, stream=True)
    found = away.stat("to")
    assert found.content_type == "text/x"
    assert dict(found.user) == {"k": "v"}


def test_streams_carry_metadata(op: Operator, away: Operator, need: Callable[..., None]) -> None:
    """Content type and user metadata arrive, both ways."""
    need("user_metadata")
    op.write("from", b"data", content_type="text/x", user={"k": "v"})
    op.copy("from", "to", into=away, stream=True)
    found = away.stat("to")
    assert (found.content_type, dict(found.user)) == ("text/x", {"k": "v"})
    away.copy("to", "back", into=op, stream=True)
    found = op.stat("back")
    assert (found.content_type, dict(found.user)) == ("text/x", {"k": "v"})


def test_streams_keep_conditions(op: Operator, away: Operator) -> None:
    """if_not_exists is the target's own atomic condition, or Unsupported."""
    away.write("from", b"data")
    op.write("to", b"old")
    wanted = ConditionNotMatch if op.capability.write_with_if_not_exists else Unsupported
    with pytest.raises(wanted):
        away.copy("from", "to", into=op, stream=True, if_not_exists=True)
    assert op.read("to") == b"old"


def test_a_stream_is_invisible_until_its_end(op: Operator, away: Operator, case: Case) -> None:
    """All bytes may have passed; the target appears only when the caller asks for the end."""
    away.write("from", content(case.large))
    copier = away.copier("from", "to", into=op, stream=True)
    while copier.progress.copied < case.large:
        next(copier)
    assert not op.exists("to")
    assert list(copier) == []
    assert op.exists("to")


def test_an_aborted_stream_leaves_nothing(op: Operator, away: Operator, case: Case) -> None:
    """Aborted midway or at the very end: the old target stays, nothing is left behind."""
    away.write("from", content(case.large))
    op.write("to", b"old")
    copier = away.copier("from", "to", into=op, stream=True)
    next(copier)
    copier.abort()
    late = away.copier("from", "to", into=op, stream=True)
    while late.progress.copied < case.large:
        next(late)
    late.abort()
    assert op.read("to") == b"old"
    assert [entry.path for entry in op.list()] == ["to"]
    assert list(op.leftovers()) == []


def test_a_stream_cannot_be_resumed(op: Operator, away: Operator) -> None:
    """Unsupported: its bytes live in this process."""
    away.write("from", b"data")
    with away.copier("from", "to", into=op, stream=True) as copier:
        with pytest.raises(Unsupported):
            copier.checkpoint()
        with pytest.raises(Unsupported):
            copier.pause()
        assert sum(copier) == 4


def test_a_source_that_changes_before_it_is_read(op: Operator, away: Operator) -> None:
    """Other bytes are never copied for those that were looked at."""
    away.write("from", b"first")
    copier = away.copier("from", "to", into=op, stream=True)
    away.write("from", b"other")
    with pytest.raises((ConditionNotMatch, IntegrityError)):
        copier.run()
    assert not op.exists("to")


def test_a_broken_read_goes_on(op: Operator, away: Operator, case: Case) -> None:
    """A read that cannot be opened at first is opened again, on the same bytes."""
    data = content(case.large)
    away.write("from", data)

    def act(number: int) -> None:
        if number <= 2:
            raise Unavailable("away for a moment")

    copier = away.layer(Hook("read", act)).copier("from", "to", into=op, stream=True)
    assert sum(copier) == len(data)
    assert op.read("to") == data
