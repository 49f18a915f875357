"""Pieces pass the relay only with a token that the satellite signed for that key and piece."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metainfo import ApiKey
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.pieces import piece_id
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.relay import server
from calque.store.relay.client import RelayedNode
from calque.store.satellite import piece_tokens
from calque.store.serve import serve_store
from calque.store.uplink.grant import AccessGrant
from calque.values import MIB
from tests.store_client.world import BUCKET, SMALL, Clock


@dataclass
class Served:
    """A served store with two projects, and a way to speak to its relay by hand."""

    store: EmbeddedStore
    clock: Clock
    address: str
    channel: grpc.Channel
    mine: AccessGrant
    other: AccessGrant

    def open(self, grant: AccessGrant) -> Project:
        return open_project(self.address, access=grant, settings=SMALL)

    def node(self, grant: AccessGrant | ApiKey) -> RelayedNode:
        key = grant if isinstance(grant, ApiKey) else grant.api_key
        return RelayedNode(bytes(32), self.channel, bytes(key))

    def begin(self, grant: AccessGrant, **begin: object) -> pb.SegmentBeginResponse:
        """One segment of a new upload, begun by hand."""
        with self.open(grant) as project:
            session = project.session
            located = session.locate(BUCKET, f"by hand {os.urandom(4).hex()}")
            begun = session.metainfo.begin_object(
                pb.ObjectBeginRequest(
                    header=session.header,
                    bucket=BUCKET,
                    encrypted_object_key=located.encrypted,
                    encryption_parameters=pb.EncryptionParameters(
                        cipher_suite=pb.CIPHER_AES_256_GCM, block_size=1024
                    ),
                    **begin,  # type: ignore[arg-type]
                )
            )
            return session.metainfo.begin_segment(
                pb.SegmentBeginRequest(header=session.header, upload_id=begun.upload_id)
            )

    def listed(self, grant: AccessGrant, key: str) -> pb.Segment:
        with self.open(grant) as project:
            session = project.session
            located = session.locate(BUCKET, key)
            page = session.metainfo.list_segments(
                pb.SegmentListRequest(
                    header=session.header,
                    bucket=BUCKET,
                    encrypted_object_key=located.encrypted,
                )
            )
            return page.segments[0]

    def piece_count(self) -> int:
        return sum(1 for node in self.store.nodes.direct() for _ in node.pieces())


def committing(
    project: Project, begun: pb.SegmentBeginResponse, encrypted_size: int
) -> pb.SegmentCommitRequest:
    return pb.SegmentCommitRequest(
        header=project.session.header,
        segment_id=begun.segment_id,
        encrypted_key=bytes(48),
        encrypted_key_nonce=bytes(12),
        encrypted_size=encrypted_size,
        plain_size=100,
        pieces=[pb.Piece(number=each.number, node_id=each.node.id) for each in begun.pieces],
    )


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    clock = Clock()
    options = StoreOptions(redundancy=Redundancy.of(2, 3, share_size=1000))
    store = EmbeddedStore.create(folder, options, clock=clock)
    try:
        with serve_store(store) as served:
            target = served.address.removeprefix("grpc://")
            mine = replace(store.grant(), address=served.address)
            project = store.endpoint.admin.create_project("other")
            key = store.endpoint.admin.create_api_key(project.id)
            with grpc.insecure_channel(target) as channel:
                made = Served(
                    store, clock, served.address, channel, mine, replace(mine, api_key=key)
                )
                for grant in (made.mine, made.other):
                    with made.open(grant) as opened:
                        opened.create_bucket(BUCKET)
                yield made
    finally:
        store.close()


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


@pytest.fixture
def bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The other project may hold 30,000 bytes, and has no room besides for what is open."""
    monkeypatch.setattr(piece_tokens, "ROOM", 0)
    project = served.store.endpoint.admin.find_project("other")
    assert project is not None
    served.store.endpoint.admin.set_limits(
        project.project_id, limit_bytes=30_000, limit_segments=None
    )
    return served


def put_until_refused(served: Served) -> int:
    """Begin segments and put pieces of 10,000 bytes, none of which is committed."""
    node = served.node(served.other)
    for pieces in range(1_000):
        begun = served.begin(served.other)
        try:
            node.write(b"", [bytes(10_000)], None, token=begun.pieces[0].token)
        except ResourceExhausted:
            return pieces
    raise AssertionError("nobody stopped it")


def test_open_pieces_are_bounded_in_sum(bounded: Served) -> None:
    """A project puts its quota once more and a segment, then no more; other projects go on."""
    pieces = put_until_refused(bounded)
    assert 3 <= pieces <= 12
    assert bounded.piece_count() == pieces
    assert put_until_refused(bounded) == 0
    bounded.node(bounded.mine).write(
        b"", [bytes(10_000)], None, token=bounded.begin(bounded.mine).pieces[0].token
    )
    # After two days the sweep has taken them, and there is room again.
    bounded.clock.ahead = timedelta(hours=49)
    assert put_until_refused(bounded) == pieces


def test_a_put_that_fails_is_not_counted(bounded: Served) -> None:
    """Neither a piece that is there already, nor one with too many bytes."""
    begun = bounded.begin(bounded.other)
    node = bounded.node(bounded.other)
    node.write(b"", [bytes(1_000)], None, token=begun.pieces[0].token)
    for _ in range(20):
        with pytest.raises(ConditionNotMatch):
            node.write(b"", [bytes(10_000)], None, token=begun.pieces[0].token)
        with pytest.raises(ResourceExhausted, match="than its token"):
            node.write(b"", [bytes(100_000)], None, token=begun.pieces[1].token)
    assert put_until_refused(bounded) >= 3


def test_objects_are_replaced_at_a_full_quota(bounded: Served) -> None:
    """Again and again, with as many bytes; uploads that are aborted give their room back."""
    content = os.urandom(20_000)
    settings = replace(SMALL, segment_size=20_000)
    with open_project(bounded.address, access=bounded.other, settings=settings) as project:
        for _ in range(8):
            project.upload(BUCKET, "full", content)
        for _ in range(8):
            upload = project.begin_multipart(BUCKET, "part")
            upload.upload_part(1, content)
            upload.abort()
        project.upload(BUCKET, "full", content)
        assert project.download(BUCKET, "full").read() == content


def test_pieces_of_slow_nodes_use_up_no_room(bounded: Served) -> None:
    """What comes after its segment was committed without it is not counted with the open ones."""
    with bounded.open(bounded.other) as project:
        node = bounded.node(bounded.other)
        for _ in range(5):
            begun = bounded.begin(bounded.other)
            for piece in begun.pieces[:2]:
                node.write(b"", [bytes(1_000)], None, token=piece.token)
            request = committing(project, begun, 1_000)
            del request.pieces[2:]
            project.session.metainfo.commit_segment(request)
            node.write(b"", [bytes(1_000)], None, token=begun.pieces[2].token)
    assert put_until_refused(bounded) >= 3


def test_a_segment_is_not_smaller_than_its_pieces(bounded: Served) -> None:
    """A quota is charged for what a segment says: so it cannot say less than was put for it."""
    node = bounded.node(bounded.other)
    begun = bounded.begin(bounded.other)
    for piece in begun.pieces:
        node.write(b"", [bytes(10_000)], None, token=piece.token)
    with bounded.open(bounded.other) as project:
        with pytest.raises(InvalidInput, match="a piece has 10000 bytes"):
            project.session.metainfo.commit_segment(committing(project, begun, 100))
        project.session.metainfo.commit_segment(committing(project, begun, 20_000))


def commit_small(served: Served, project: Project, begun: pb.SegmentBeginResponse) -> None:
    """Commit a segment of 100 bytes that names its first two pieces of three."""
    node = served.node(served.other)
    for piece in begun.pieces[:2]:
        node.write(b"", [bytes(50)], None, token=piece.token)
    request = committing(project, begun, 100)
    del request.pieces[2:]
    project.session.metainfo.commit_segment(request)


def test_a_piece_that_a_segment_left_out_is_no_larger(bounded: Served) -> None:
    """Put after the commit it may have as many bytes as the others, and no more."""
    node = bounded.node(bounded.other)
    with bounded.open(bounded.other) as project:
        begun = bounded.begin(bounded.other)
        commit_small(bounded, project, begun)
        with pytest.raises(ResourceExhausted, match="fewer bytes"):
            node.write(b"", [bytes(1_000)] * 10, None, token=begun.pieces[2].token)
    assert bounded.piece_count() == 2


def test_pieces_that_segments_left_out_stay_open(bounded: Served) -> None:
    """Put before the commit, what they have beyond the others counts until it is swept."""
    node = bounded.node(bounded.other)

    def put_large_one(project: Project) -> None:
        begun = bounded.begin(bounded.other)
        node.write(b"", [bytes(10_000)], None, token=begun.pieces[2].token)
        commit_small(bounded, project, begun)
        for each in project.list_pending(BUCKET):
            project.resume_multipart(BUCKET, each.key, each.upload_id).abort()

    with bounded.open(bounded.other) as project:
        put_large_one(project)
        with pytest.raises(ResourceExhausted):
            list(map(put_large_one, [project] * 60))
    assert bounded.piece_count() < 40


def test_a_piece_on_its_way_does_not_grow_after_the_commit(bounded: Served) -> None:
    """Begun before its segment was committed, it ends with an error, and nothing of it is kept."""
    committed = threading.Event()
    node = bounded.node(bounded.other)
    with bounded.open(bounded.other) as project, ThreadPoolExecutor(1) as threads:
        begun = bounded.begin(bounded.other)
        sent = threading.Event()

        def chunks() -> Iterator[bytes]:
            yield bytes(50)
            sent.set()
            committed.wait()
            yield bytes(9_000)

        put = threads.submit(node.write, b"", chunks(), None, token=begun.pieces[0].token)
        try:
            sent.wait()
            node.write(b"", [bytes(50)], None, token=begun.pieces[1].token)
            request = committing(project, begun, 100)
            del request.pieces[2:]
            project.session.metainfo.commit_segment(request)
        finally:
            committed.set()
        with pytest.raises(ResourceExhausted, match="fewer bytes"):
            put.result()
    assert bounded.piece_count() == 1


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
