"""Pieces pass the relay only with a token that the satellite signed for that key and piece."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import grpc
import pytest

from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    FailedPrecondition,
    InvalidInput,
    PermissionDenied,
    ResourceExhausted,
)
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes.pieces import piece_id
from calque.store.relay import server
from calque.store.uplink.grant import AccessGrant
from calque.values import MIB
from tests.store_client.served_pieces import Served, committing, serving
from tests.store_client.world import BUCKET


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "s") as made:
        yield made


def test_a_piece_is_put_once(served: Served) -> None:
    """The token's piece, as the satellite named it; a second time it is refused."""
    begun = served.begin(served.mine)
    first = begun.pieces[0]
    served.node(served.mine).write(b"ignored", [b"fir", b"st"], None, token=first.token)
    node = next(each for each in served.store.nodes.direct() if each.id == first.node.id)
    piece = piece_id(begun.root_piece_id, first.node.id, first.number)
    assert [(each.piece, each.size) for each in node.pieces()] == [(piece, 5)]
    with pytest.raises(ConditionNotMatch):
        served.node(served.mine).write(b"", [b"second"], None, token=first.token)
    assert b"".join(node.read(piece, 0, 5)) == b"first"


def test_a_key_without_a_token_puts_and_gets_nothing(served: Served) -> None:
    """An API key alone is not enough, nor are bytes that somebody else made up."""
    node = served.node(served.mine)
    for token in (b"", b"x", os.urandom(200)):
        with pytest.raises(InvalidInput, match="token"):
            node.write(os.urandom(32), [b"x"], None, token=token)
        with pytest.raises(InvalidInput, match="token"):
            list(node.read(os.urandom(32), 0, 1, token=token))
    assert served.piece_count() == 0


def test_tokens_of_other_kinds_and_changed_ones_are_refused(served: Served) -> None:
    """Each bit counts; a segment id is no piece token; leave to put is none to get."""
    begun = served.begin(served.mine)
    token, node = begun.pieces[0].token, served.node(served.mine)
    for at in (0, 15, 16, 30, len(token) - 1):
        changed = bytearray(token)
        changed[at] ^= 1
        with pytest.raises(InvalidInput):
            node.write(b"", [b"x"], None, token=bytes(changed))
    with pytest.raises(InvalidInput):
        node.write(b"", [b"x"], None, token=begun.segment_id)
    with pytest.raises(PermissionDenied, match="something else"):
        list(node.read(b"", 0, 1, token=token))
    assert served.piece_count() == 0


def test_no_project_reaches_another_ones_pieces(served: Served) -> None:
    """Neither to read nor to write, even with a token that was overheard."""
    with served.open(served.mine) as project:
        project.upload(BUCKET, "secret", os.urandom(900))
    segment = served.listed(served.mine, "secret")
    assert b"".join(served.node(served.mine).read(b"", 0, 3, token=segment.piece_tokens[0]))
    begun = served.begin(served.mine)
    weaker = served.mine.restrict(read=True, write=False)
    for thief in (served.other, weaker):
        with pytest.raises(PermissionDenied, match="another API key"):
            list(served.node(thief).read(b"", 0, 3, token=segment.piece_tokens[0]))
        with pytest.raises(PermissionDenied, match="another API key"):
            served.node(thief).write(b"", [b"x"], None, token=begun.pieces[0].token)


def test_leave_to_get_needs_the_right_to_read(served: Served) -> None:
    """Whoever may only write gets no token for the pieces of a pending upload."""
    blind = served.mine.restrict(read=False)
    with served.open(blind) as project:
        upload = project.begin_multipart(BUCKET, "parts")
        upload.upload_part(1, os.urandom(900))
        session = project.session
        page = session.metainfo.list_segments(
            pb.SegmentListRequest(header=session.header, upload_id=upload.id)
        )
        assert page.segments[0].pieces
        assert not page.segments[0].piece_tokens
        upload.abort()


def test_a_piece_has_no_more_bytes_than_its_token(served: Served) -> None:
    """One more byte and nothing is kept; by the segment's size and by the project's limit."""
    served.store.endpoint.admin.set_limits(
        served.store.endpoint.admin.find_project("other").id,  # type: ignore[union-attr]
        limit_bytes=5000,
        limit_segments=None,
    )
    for grant, beyond in ((served.mine, 50 * MIB), (served.other, 5000)):
        token = served.begin(grant).pieces[0].token
        chunk = bytes(min(beyond, MIB))
        with pytest.raises(ResourceExhausted, match="more bytes than its token"):
            served.node(grant).write(b"", (chunk for _ in range(beyond // len(chunk) + 1)), None,
                                     token=token)  # fmt: skip
    assert served.piece_count() == 0


def test_bytes_beyond_the_committed_size_are_not_read(served: Served) -> None:
    """A size that was understated at the commit hides the rest for good."""
    with served.open(served.mine) as project:
        project.upload(BUCKET, "k", os.urandom(900))
    token = served.listed(served.mine, "k").piece_tokens[0]
    with pytest.raises(InvalidInput, match="bytes up to"):
        list(served.node(served.mine).read(b"", 0, 10**9, token=token))
    with pytest.raises(InvalidInput, match="19 digits"):
        list(served.node(served.mine).read(b"", 10**24, 1, token=token))


def test_tokens_end(served: Served) -> None:
    """After a day neither they nor the commit of the segment pass: its pieces may be orphans."""
    begun = served.begin(served.mine)
    served.clock.ahead += timedelta(hours=25)
    with pytest.raises(PermissionDenied, match="too old"):
        served.node(served.mine).write(b"", [b"x"], None, token=begun.pieces[0].token)
    with served.open(served.mine) as project:
        asked = committing(project, begun, 100)
        with pytest.raises(FailedPrecondition, match="long ago"):
            project.session.metainfo.commit_segment(asked)


def test_a_commit_beyond_the_size_of_its_token_is_refused(served: Served) -> None:
    """Sizes are bounded at the door."""
    begun = served.begin(served.mine)
    with served.open(served.mine) as project:
        for size in (-1, 2**40, 2**62):
            asked = committing(project, begun, size)
            kind = InvalidInput if size < 0 else ResourceExhausted
            with pytest.raises(kind, match="encrypted bytes"):
                project.session.metainfo.commit_segment(asked)


def test_a_revoked_key_keeps_no_leave(served: Served) -> None:
    """Tokens that were given out before go with the key."""
    weaker = served.mine.restrict(delete=False)
    begun = served.begin(weaker)
    with served.open(served.mine) as project:
        session = project.session
        session.metainfo.revoke_api_key(
            pb.ApiKeyRevokeRequest(header=session.header, api_key=bytes(weaker.api_key))
        )
    with pytest.raises(PermissionDenied, match="revoked"):
        served.node(weaker).write(b"", [b"x"], None, token=begun.pieces[0].token)


def test_the_expiry_is_the_satellites(served: Served) -> None:
    """What the client says of it counts for nothing: it would be a way to have pieces deleted."""
    with served.open(served.mine) as project:
        end = served.clock.now() + timedelta(hours=3)
        project.upload(BUCKET, "expires", os.urandom(900), expires=end)
        project.upload(BUCKET, "stays", os.urandom(900))
    markers = list(served.store.folder.glob("nodes/*/expiries/*/*"))
    assert len({marker.parent.name for marker in markers}) == 1
    assert len(markers) == served.piece_count() // 2


def test_hostile_metadata_gets_an_answer(served: Served) -> None:
    """Whatever stands in the headers: an error of ours, never a failure of the server."""
    put = served.channel.stream_unary("/calque.pieces.Pieces/Put", None, None)
    for told in ((), (("calque-token-bin", b"\0" * 5000),), (("calque-key-bin", b"\xff"),)):
        with pytest.raises(grpc.RpcError) as caught:
            put(iter([b"x"]), metadata=told)
        assert caught.value.code() in (
            grpc.StatusCode.PERMISSION_DENIED,
            grpc.StatusCode.INVALID_ARGUMENT,
        )
    with pytest.raises(CalqueError):
        list(served.node(served.mine).read(b"", 0, 1))


@contextmanager
def slow_puts(served: Served, grants: list[AccessGrant]) -> Iterator[None]:
    """For each grant a piece that is sent without an end, until the block is over."""
    over, begun = threading.Event(), threading.Semaphore(0)

    def chunks() -> Iterator[bytes]:
        yield b"first"
        begun.release()
        over.wait()
        yield b"last"

    tokens = [served.begin(grant).pieces[0].token for grant in grants]
    with ThreadPoolExecutor(len(grants)) as threads:
        puts = [
            threads.submit(served.node(grant).write, b"", chunks(), None, token=token)
            for grant, token in zip(grants, tokens, strict=True)
        ]
        for _ in grants:
            begun.acquire()
        try:
            yield
        finally:
            over.set()
            for put in puts:
                put.result()


@pytest.mark.parametrize("derived", [False, True])
def test_one_key_does_not_take_every_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, derived: bool
) -> None:
    """More slow uploads than the relay has streams: other keys go on, and none is refused.

    Keys that were made from one count with it: anybody can make as many as he likes.
    """
    monkeypatch.setattr(server, "STREAMS", 16)
    monkeypatch.setattr(server, "STREAMS_PER_NODE", 1)
    with serving(tmp_path / "s") as served:
        lent = served.mine.restrict(delete=False)
        grants = [
            lent.restrict(list=False, not_after=served.clock.now() + timedelta(days=1 + number))
            if derived
            else served.mine
            for number in range(20)
        ]
        with slow_puts(served, grants):
            # The siblings of a key that was lent out, and other projects always.
            for grant in (served.other, *([served.mine] if derived else [])):
                with served.open(grant) as project:
                    project.upload(BUCKET, "k", os.urandom(900))
                    assert len(project.download(BUCKET, "k").read()) == 900
