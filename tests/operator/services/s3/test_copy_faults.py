"""Copies through a proxy that fails them in every way."""

from __future__ import annotations

import itertools
import threading

import pytest

from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    NotFound,
    RateLimited,
    Unavailable,
    Unexpected,
)
from calque.operator import Operator
from calque.operator.layers import Retry
from calque.operator.services.s3.uploads import Uploads
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import PART, Open
from tests.servers.proxy import Exchange, Fault, FaultProxy, Reply

SMALL, LARGE = 1000, 3 * PART + 17
BUSY = Reply(503, {}, b"<Error><Code>SlowDown</Code><Message>slower</Message></Error>")
BROKEN = Reply(500, {}, b"<Error><Code>InternalError</Code><Message>oops</Message></Error>")
INSIDE = Reply(
    200,
    {"Content-Type": "application/xml"},
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>InternalError</Code>'
    b"<Message>We encountered an internal error. Please try again.</Message></Error>",
)

COPY = {"method": "PUT", "header": "x-amz-copy-source"}
SECOND = {"method": "PUT", "contains": "partNumber=2&"}
COMMIT = {"method": "POST", "contains": "?uploadId="}
BEGIN = {"method": "POST", "contains": "?uploads"}


@pytest.fixture
def source(op: Operator) -> bytes:
    """Two sources, below and above the threshold."""
    data = content(LARGE)
    op.write("small", data[:SMALL])
    op.write("large", data)
    return data


def nothing_left(op: Operator) -> bool:
    """No upload under this test's root, ours or not."""
    service = op.service
    client = service._client  # type: ignore[attr-defined]
    root = service._config.root  # type: ignore[attr-defined]
    return not list(Uploads(client).list_unfinished("", f"{root}/"))


@pytest.mark.parametrize("reply", [BUSY, BROKEN, INSIDE], ids=["503", "500", "200 with an error"])
@pytest.mark.parametrize("fault", [COPY, SECOND, COMMIT], ids=["copy", "part", "commit"])
def test_what_fails_twice_and_then_works(
    op: Operator,
    through: Operator,
    proxy: FaultProxy,
    source: bytes,
    fault: dict[str, str],
    reply: Reply,
) -> None:
    """It is sent again, and its bytes are counted once."""
    name = "small" if fault is COPY else "large"
    proxy.add(Fault(**fault, times=2, reply=reply))  # type: ignore[arg-type]
    with through.copier(name, "to") as copier:
        assert sum(copier) == copier.progress.total
    assert proxy.count(fault["method"], fault.get("contains")) >= 3
    assert op.read("to") == (source[:SMALL] if fault is COPY else source)
    assert nothing_left(op)


@pytest.mark.parametrize("lost", [{"drop": True}, {"drop": True, "acted": True}, {"cut": 10}])
@pytest.mark.parametrize("fault", [COPY, SECOND, COMMIT], ids=["copy", "part", "commit"])
def test_answers_that_are_lost(
    op: Operator,
    through: Operator,
    proxy: FaultProxy,
    source: bytes,
    fault: dict[str, str],
    lost: dict[str, object],
) -> None:
    """Dropped before or after the server acted, or cut in the middle: the target is right."""
    name = "small" if fault is COPY else "large"
    proxy.add(Fault(**fault, **lost))  # type: ignore[arg-type]
    through.copy(name, "to")
    assert op.read("to") == (source[:SMALL] if fault is COPY else source)
    assert nothing_left(op)


def test_a_lost_commit_under_a_condition_is_found_out(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """The server made the target and its answer was lost: complete, not a false refusal."""
    proxy.add(Fault(**COMMIT, drop=True, acted=True))  # type: ignore[arg-type]
    made = through.copy("large", "to", if_not_exists=True)
    assert made.size == LARGE
    assert op.read("to") == source
    assert proxy.count(**COMMIT) == 1


def test_a_part_that_never_works(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """The first error is raised, the upload is aborted, the old target stays."""
    op.write("to", b"old")
    proxy.add(Fault(**SECOND, times=None, reply=BROKEN))  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match="InternalError"):
        through.copy("large", "to")
    assert op.read("to") == b"old"
    assert nothing_left(op)


def test_an_abort_that_fails_too(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """The first error is raised, and what was left is named on it; a sweep finds it."""
    proxy.add(
        Fault(**SECOND, times=None, reply=BROKEN),  # type: ignore[arg-type]
        Fault(method="DELETE", times=None, reply=BROKEN),
    )
    with pytest.raises(Unavailable, match="InternalError") as raised:
        through.copy("large", "to")
    notes = " ".join(raised.value.__notes__)
    (left,) = op.leftovers()
    assert left.id in notes
    op.remove_leftover(left)
    assert nothing_left(op)


def test_retry_after_is_obeyed(through: Operator, proxy: FaultProxy, source: bytes) -> None:
    """The server says when; it is not asked sooner."""
    busy = Reply(503, {"Retry-After": "1"}, BUSY.body)
    proxy.add(Fault(**COPY, reply=busy))  # type: ignore[arg-type]
    through.copy("small", "to")
    first, second = proxy.seen("PUT")
    assert second.at - first.at >= 1.0


def test_a_limit_that_stays_is_told(through: Operator, proxy: FaultProxy, source: bytes) -> None:
    """RateLimited after a bounded number of tries, never a hot loop."""
    proxy.add(Fault(**COPY, times=None, reply=BUSY))  # type: ignore[arg-type]
    with pytest.raises(RateLimited):
        through.copy("small", "to")
    assert proxy.count("PUT") == 4


@pytest.mark.parametrize("fault", [COPY, SECOND, COMMIT], ids=["copy", "part", "commit"])
def test_a_reply_without_etag(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes, fault: dict[str, str]
) -> None:
    """Success without an ETag is no success."""

    def bare(reply: Reply) -> Reply:
        body = reply.body
        start, end = body.find(b"<ETag>"), body.find(b"</ETag>")
        return Reply(reply.status, reply.headers, body[:start] + body[end + 7 :])

    proxy.add(Fault(**fault, times=None, edit=bare))  # type: ignore[arg-type]
    with pytest.raises(Unexpected, match="ETag"):
        through.copy("small" if fault is COPY else "large", "to")
    assert nothing_left(op)


def test_a_part_that_is_answered_as_an_upload(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """A server that knows no part copies stores an empty part and says 200: refused."""
    proxy.add(Fault(**SECOND, reply=Reply(200, {"ETag": '"d41d8cd98f00b204e9800998ecf8427e"'})))  # type: ignore[arg-type]
    with pytest.raises(Unexpected):
        through.copy("large", "to")
    assert not op.exists("to")
    assert nothing_left(op)


def conflict(number: int) -> Reply:
    return Reply(
        409,
        {},
        b"<Error><Code>ConditionalRequestConflict</Code><Message>%d</Message></Error>" % number,
    )


def test_a_conflict_on_a_copy_is_tried_again(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """409 on CopyObject: the same request once more."""
    proxy.add(Fault(**COPY, times=2, reply=conflict(1)))  # type: ignore[arg-type]
    through.copy("small", "to", if_not_exists=True)
    assert proxy.count("PUT") == 3
    assert op.read("to") == source[:SMALL]


def test_a_conflict_on_a_commit_begins_anew(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """409 on Complete: a new upload, every part again, bytes counted once."""
    proxy.add(Fault(**COMMIT, reply=conflict(1)))  # type: ignore[arg-type]
    with through.copier("large", "to", if_not_exists=True) as copier:
        assert sum(copier) == LARGE
    assert proxy.count(**BEGIN) == 2
    assert op.read("to") == source
    assert nothing_left(op)


def test_conflicts_without_end_are_told(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """Bounded: ConditionNotMatch, and nothing is left."""
    proxy.add(Fault(**COMMIT, times=None, reply=conflict(1)))  # type: ignore[arg-type]
    with pytest.raises(ConditionNotMatch):
        through.copy("large", "to", if_not_exists=True)
    assert proxy.count(**BEGIN) == 4
    assert not op.exists("to")
    assert nothing_left(op)


def test_a_target_that_appears_midway(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """Another writer was there before the commit: refused, theirs stays, nothing is left."""
    proxy.add(Fault(**COMMIT, hook=lambda _: op.write("to", b"theirs")))  # type: ignore[arg-type]
    with pytest.raises(ConditionNotMatch):
        through.copy("large", "to", if_not_exists=True)
    assert op.read("to") == b"theirs"
    assert nothing_left(op)


@pytest.mark.parametrize("name", ["small", "large"])
def test_a_source_that_changes_while_it_is_copied(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes, name: str
) -> None:
    """ConditionNotMatch that says so, and names the source; no target."""
    once = iter([True])

    def replace(_: Exchange) -> None:
        if next(once, False):
            op.write(name, b"other" * 2_000_000)

    fault = COPY if name == "small" else SECOND
    proxy.add(Fault(**fault, hook=replace))  # type: ignore[arg-type]
    with pytest.raises(ConditionNotMatch, match=f"{name} was changed"):
        through.copy(name, "to", if_not_exists=True)
    assert not op.exists("to")
    assert nothing_left(op)


def test_a_pin_that_the_server_ignores(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """Where parts would be taken from other bytes, that is seen before the commit."""

    def unpinned(exchange: Exchange) -> None:
        if "partNumber=2&" in exchange.target:
            op.write("large", content(LARGE))

    real = op.stat("large").etag
    ok = Reply(200, {}, b'<CopyPartResult><ETag>"%s"</ETag></CopyPartResult>' % (b"0" * 32))
    proxy.add(Fault(**COPY, times=None, hook=unpinned, reply=ok))  # type: ignore[arg-type]
    with pytest.raises(ConditionNotMatch, match="was changed"):
        through.copy("large", "to")
    assert op.stat("large").etag != real
    assert proxy.count(**COMMIT) == 0
    assert nothing_left(op)


def test_a_slow_commit_that_lives(
    op: Operator, open_at: Open, proxy: FaultProxy, source: bytes
) -> None:
    """White space before the answer, for longer than an ordinary reply may take."""
    patient = (Retry(attempts=6, first=0.01),)  # of parts, which a busy machine may copy slowly
    through = open_at(proxy.endpoint, read_timeout=4.0, layers=patient)
    proxy.add(Fault(**COMMIT, trickle=5.0))  # type: ignore[arg-type]
    through.copy("large", "to")
    assert op.read("to") == source
    assert proxy.count(**COMMIT) == 1


def test_an_error_after_white_space(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """200, then silence, then an error document: an error."""
    late = Reply(200, {}, b"  \n \n" + INSIDE.body)
    proxy.add(Fault(**COMMIT, times=None, reply=late))  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match="InternalError"):
        through.copy("large", "to")
    assert nothing_left(op)


def test_as_many_in_flight_as_asked(
    through: Operator, proxy: FaultProxy, source: bytes, op: Operator
) -> None:
    """Never more than ``concurrent`` parts at a time, and that many while enough remain."""
    op.write("wide", content(6 * PART))
    arrivals = threading.Condition()
    arrived = 0

    def wait_for_two_more(_: Exchange) -> None:
        nonlocal arrived
        with arrivals:
            arrived += 1
            arrivals.notify_all()
            wanted = min(arrived + 2, 6)
            arrivals.wait_for(lambda: arrived >= wanted, timeout=30)

    proxy.add(Fault(**COPY, times=None, hook=wait_for_two_more))  # type: ignore[arg-type]
    through.copy("wide", "to", concurrent=3, chunk=PART)
    assert proxy.max_in_flight == 3
    parts = [each for each in proxy.seen("PUT") if "x-amz-copy-source" in each.headers]
    flights = [each.in_flight for each in parts]
    assert flights.count(3) >= 3


def test_what_a_small_copy_asks(through: Operator, proxy: FaultProxy, source: bytes) -> None:
    """Two requests: a look at the source, and the copy, pinned."""
    through.copy("small", "to")
    assert [each.method for each in proxy.log] == ["HEAD", "PUT"]
    copy = proxy.log[1]
    assert copy.headers["x-amz-copy-source-if-match"].strip('"')
    assert "x-amz-copy-source-range" not in copy.headers


def test_a_small_source_is_never_cut_into_ranges(
    open_at: Open, proxy: FaultProxy, op: Operator
) -> None:
    """Up to 5 MB S3 takes no range, even where the copy must go by an upload."""
    through = open_at(proxy.endpoint, copy_if_not_exists="multipart", threshold=1)
    for size in (1, 5_000_000):
        data = content(size)
        op.write(f"from{size}", data)
        through.copy(f"from{size}", f"to{size}", if_not_exists=True, chunk=PART)
        assert op.read(f"to{size}") == data
    assert not [each for each in proxy.log if "x-amz-copy-source-range" in each.headers]


def test_what_a_multipart_copy_sends(
    through: Operator, proxy: FaultProxy, source: bytes, op: Operator
) -> None:
    """Every part is pinned and ranged; ranges cover the object; the commit names the size."""
    pin = op.stat("large").etag
    through.copy("large", "to", if_not_exists=True, chunk=PART)
    parts = [each for each in proxy.seen("PUT") if "x-amz-copy-source" in each.headers]
    assert {each.headers["x-amz-copy-source-if-match"] for each in parts} == {f'"{pin}"'}
    spans = sorted(
        tuple(map(int, each.headers["x-amz-copy-source-range"][6:].split("-"))) for each in parts
    )
    assert spans[0][0] == 0
    assert spans[-1][1] == LARGE - 1
    assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(spans))
    (commit,) = proxy.seen(**COMMIT)
    assert commit.headers["x-amz-mp-object-size"] == str(LARGE)
    assert commit.headers["if-none-match"] == "*"
    assert commit.body.count(b"<Part>") == len(parts)
    assert b"<PartNumber>10000<" not in commit.body


def test_a_resumed_copy_sends_only_what_is_missing(
    through: Operator, proxy: FaultProxy, source: bytes, op: Operator
) -> None:
    """Finished parts are not copied again; the server's list decides."""
    copier = through.copier("large", "to", concurrent=1, chunk=PART)
    next(copier)
    next(copier)
    checkpoint = copier.pause().to_json()
    held = sum("x-amz-copy-source" in each.headers for each in proxy.seen("PUT"))
    assert sum(through.resume(checkpoint)) == LARGE
    total = sum("x-amz-copy-source" in each.headers for each in proxy.seen("PUT"))
    assert held >= 2
    assert total == 4
    assert op.read("to") == source
    assert "secret" not in checkpoint
    assert "Signature" not in checkpoint


def test_tags_that_fit_no_header(op: Operator, source: bytes) -> None:
    """More than 2 KB of tags are put after the object was made, on both paths."""
    tags = {f"{number}" + "k" * 100: "ü" * 100 for number in range(8)}
    for name in ("small", "large"):
        op.write(name, source[:SMALL] if name == "small" else source, tags=tags)
        assert dict(op.stat(name).tags or {}) == tags
        op.copy(name, "to")
        assert dict(op.stat("to").tags or {}) == tags


def test_a_source_that_vanishes(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """NotFound, aborted, nothing left."""
    proxy.add(Fault(**SECOND, hook=lambda _: op.delete("large")))  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        through.copy("large", "to")
    assert nothing_left(op)


def test_a_marker_that_cannot_be_put(
    op: Operator, through: Operator, proxy: FaultProxy, source: bytes
) -> None:
    """An upload that cannot be marked as ours is dropped at once."""
    proxy.add(Fault(method="PUT", contains="partNumber=10000", times=None, reply=BROKEN))
    with pytest.raises(CalqueError):
        through.copy("large", "to")
    assert proxy.count("DELETE") == 1
    assert nothing_left(op)


def test_a_server_that_never_answers(open_at: Open, proxy: FaultProxy, source: bytes) -> None:
    """A server that never answers is given up after the read timeout."""
    through = open_at(proxy.endpoint, read_timeout=0.2, layers=())
    proxy.add(Fault(method="HEAD", times=None, delay=60.0))
    with pytest.raises(TimeoutError):
        through.stat("small")
