"""Storage nodes that are buckets on a real S3 server."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from calque.errors import IntegrityError, TimedOut, Unavailable
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.embedded.description import write_json
from calque.store.embedded.store import STORE_FILE
from calque.store.nodes import liveness, node, upload
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.pieces import EXPIRIES, PIECES, piece_id
from calque.store.nodes.upload import Patience
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.serve import serve_store
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store
from calque.store.upkeep.gc import GcOptions, collect_store, restore_garbage
from tests.servers.proxy import Exchange, Fault, FaultProxy
from tests.servers.seaweedfs import S3Server
from tests.store_client.conftest import ONE, TWO_OF_FOUR
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SMALL, Clock, World

Buckets = list[str]
PATIENT = replace(SMALL, upload_patience=Patience(least=60.0))
"""Every node gets its piece, however slow the machine is."""


@pytest.fixture(scope="module")
def server(seaweed: S3Server) -> S3Server:
    """The SeaweedFS of all tests; these make buckets in it."""
    return seaweed


@pytest.fixture
def s3(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of the server; this process reaches it by the usual variables."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return boto3.client("s3", endpoint_url=server.endpoint)


@pytest.fixture
def nodes(s3: Any) -> Iterator[Buckets]:
    """Four empty buckets."""
    names = [f"node{number}-{os.urandom(4).hex()}" for number in range(4)]
    for name in names:
        s3.create_bucket(Bucket=name)
    yield names
    for name in names:
        empty(s3, name)


def keys_in(s3: Any, bucket: str, prefix: str = PIECES) -> list[str]:
    answer = s3.list_objects_v2(Bucket=bucket, Prefix=f"store/{prefix}")
    return [each["Key"] for each in answer.get("Contents", [])]


def empty(s3: Any, bucket: str) -> None:
    try:
        for each in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
            s3.delete_object(Bucket=bucket, Key=each["Key"])
        s3.delete_bucket(Bucket=bucket)
    except s3.exceptions.NoSuchBucket:
        pass


Make = Callable[[Redundancy], World]


@pytest.fixture
def make(tmp_path: Path, nodes: Buckets) -> Iterator[Make]:
    """Makes a store on the buckets; it must be whole in the end."""
    made: list[World] = []

    def on(redundancy: Redundancy) -> World:
        clock = Clock()
        addresses = [f"s3://{name}/store" for name in nodes[: redundancy.total]]
        options = StoreOptions(redundancy=redundancy, nodes=addresses)
        store = EmbeddedStore.create(tmp_path / "store", options, clock=clock)
        world = World(store, World._open(store, store.grant(), PATIENT), clock)
        for bucket in (BUCKET, OTHER):
            world.project.create_bucket(bucket)
        made.append(world)
        return world

    yield on
    for world in made:
        try:
            world.check()
        finally:
            world.close()


def test_garbage_in_a_bucket(make: Make) -> None:
    """Goes to the trash beside the pieces, comes back, and goes for good after a week."""
    world = make(TWO_OF_FOUR)
    world.project.upload(BUCKET, "k", bytes(2 * SEGMENT))
    for each in world.store.nodes.direct():
        each.write(piece_id(os.urandom(32), each.id, 0), [b"left behind"], None)
    certain = GcOptions(false_positives=1e-9)
    assert collect_store(world.store, certain).trashed == 0
    world.clock.ahead += timedelta(days=4)
    assert collect_store(world.store, certain).trashed == 4
    assert sum(each.restored for each in restore_garbage(world.store)) == 4
    assert world.piece_count() == 12
    # A copy in a bucket is as young as its copying.
    world.clock.ahead += timedelta(days=4)
    assert collect_store(world.store, certain).trashed == 4
    world.clock.ahead += timedelta(days=9)
    assert sum(each.emptied for each in collect_store(world.store, certain).nodes) == 4
    assert world.piece_count() == 8


@pytest.mark.parametrize("redundancy", [ONE, TWO_OF_FOUR], ids=["1/1", "2/4"])
def test_the_life_of_an_object(make: Make, s3: Any, nodes: Buckets, redundancy: Redundancy) -> None:
    """Upload, download, ranges, copy, move, overwrite and delete; in the end no piece is left."""
    world, content = make(redundancy), os.urandom(3 * SEGMENT + 321)
    project = world.project
    project.upload(BUCKET, "k", content)
    held = [keys_in(s3, name) for name in nodes]
    assert sum(map(len, held)) == 4 * redundancy.total
    project.copy_object(BUCKET, "k", OTHER, "copy")
    project.move_object(OTHER, "copy", OTHER, "moved")
    assert [keys_in(s3, name) for name in nodes] == held
    for bucket, key in ((BUCKET, "k"), (OTHER, "moved")):
        assert project.download(bucket, key).read() == content
        for offset, length in ((0, 1), (SEGMENT - 5, 10), (1500, 1200), (3 * SEGMENT, 999)):
            piece = project.download(bucket, key, offset=offset, length=length).read()
            assert piece == content[offset : offset + length]
    project.upload(BUCKET, "k", b"inline now")
    assert [keys_in(s3, name) for name in nodes] == held
    project.delete_object(OTHER, "moved")
    assert [keys_in(s3, name) for name in nodes] == [[]] * 4


def test_a_missing_node(make: Make, s3: Any, nodes: Buckets) -> None:
    """Without one bucket everything goes on; deletes there wait; without three it is said."""
    world, content = make(TWO_OF_FOUR), os.urandom(2 * SEGMENT)
    project = world.project
    project.upload(BUCKET, "k", content)
    kept = {key: s3.get_object(Bucket=nodes[1], Key=key)["Body"].read() for key in
            keys_in(s3, nodes[1], "")}  # fmt: skip
    empty(s3, nodes[1])
    assert project.download(BUCKET, "k").read() == content
    project.upload(BUCKET, "during", content)
    assert project.download(BUCKET, "during").read() == content
    findings = check_store(world.store, young=True)
    assert [each.kind for each in findings] == ["node that does not answer"]
    project.delete_object(BUCKET, "k")
    assert len(world.store.endpoint.list_waiting_pieces()) == 2
    s3.create_bucket(Bucket=nodes[1])
    for key, body in kept.items():
        s3.put_object(Bucket=nodes[1], Key=key, Body=body)
    assert sweep_store(world.store).deleted_pieces == 2
    assert project.download(BUCKET, "during").read() == content


def test_three_missing_nodes(make: Make, s3: Any, nodes: Buckets) -> None:
    """One piece of two is too few: downloads and uploads say so, and nothing is committed."""
    world = make(TWO_OF_FOUR)
    for name in nodes[:3]:
        empty(s3, name)
    with pytest.raises(Unavailable, match="3 are needed"):
        world.project.upload(BUCKET, "k", os.urandom(SEGMENT))
    assert world.keys() == []
    for name, each in zip(nodes[:3], world.store.nodes.direct(), strict=False):
        s3.create_bucket(Bucket=name)
        with pytest.raises(Unavailable, match="calque-node"):
            each.delete(bytes(32))
        each.identity.write()


@pytest.mark.parametrize("redundancy", [ONE, TWO_OF_FOUR], ids=["1/1", "2/4"])
def test_truncated_and_lost_pieces(
    make: Make, s3: Any, nodes: Buckets, redundancy: Redundancy
) -> None:
    """With pieces to spare they are passed over; with none the download fails and says why."""
    world, content = make(redundancy), os.urandom(2 * SEGMENT)
    world.project.upload(BUCKET, "k", content)
    first, second = keys_in(s3, nodes[0])
    whole = {key: s3.get_object(Bucket=nodes[0], Key=key)["Body"].read() for key in (first, second)}
    s3.put_object(Bucket=nodes[0], Key=first, Body=whole[first][:-20])
    s3.delete_object(Bucket=nodes[0], Key=second)
    kinds = {each.kind for each in check_store(world.store, young=True)}
    assert kinds == {"piece of the wrong size", "missing piece"}
    if redundancy is ONE:
        with pytest.raises((IntegrityError, Unavailable)):
            world.project.download(BUCKET, "k").read()
    else:
        assert world.project.download(BUCKET, "k").read() == content
    for key, body in whole.items():
        s3.put_object(Bucket=nodes[0], Key=key, Body=body)
    assert world.project.download(BUCKET, "k").read() == content


def test_expiry(make: Make, s3: Any, nodes: Buckets) -> None:
    """The node knows when its pieces expire, and a sweep leaves neither piece nor marker."""
    world = make(ONE)
    expires = world.clock.now() + timedelta(hours=1)
    world.project.upload(BUCKET, "k", os.urandom(2 * SEGMENT), expires=expires)
    assert len(keys_in(s3, nodes[0], EXPIRIES)) == 2
    world.clock.ahead = timedelta(days=2)
    assert sweep_store(world.store).expired_objects == 1
    assert keys_in(s3, nodes[0], EXPIRIES) == keys_in(s3, nodes[0]) == []


def test_through_a_satellite(make: Make, s3: Any, nodes: Buckets) -> None:
    """A client of `calque serve` reaches the buckets by itself."""
    world, content = make(TWO_OF_FOUR), os.urandom(2 * SEGMENT + 9)
    with serve_store(world.store) as served:
        project: Project
        with open_project(served.address, access=world.store.grant(), settings=PATIENT) as project:
            project.upload(BUCKET, "k", content)
            project.copy_object(BUCKET, "k", OTHER, "copy")
            assert project.download(OTHER, "copy", offset=900).read() == content[900:]
            project.delete_object(BUCKET, "k")
            assert project.download(OTHER, "copy").read() == content
            project.delete_object(OTHER, "copy")
    assert [keys_in(s3, name) for name in nodes] == [[]] * 4


BRISK = replace(
    SMALL, upload_patience=Patience(least=0.05, share=0, silence=20), download_silence=20
)
"""The slow are left behind at once; nobody that lives is called silent on a slow machine."""
ANSWER_WITHIN = 4.0


Stall = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def stall(server: S3Server, nodes: Buckets, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stall]:
    """Within its block the second bucket takes requests and answers none."""
    for module in (liveness, node, upload):
        monkeypatch.setattr(module, "ANSWER_WITHIN", ANSWER_WITHIN)
    with FaultProxy(server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)

        @contextmanager
        def stall() -> Iterator[None]:
            over, before = threading.Event(), set(threading.enumerate())

            def hold(_: Exchange) -> None:
                over.wait()

            proxy.add(Fault(contains=f"/{nodes[1]}", times=None, hook=hold))
            try:
                yield
            finally:
                over.set()
                proxy.reset()
                for thread in set(threading.enumerate()) - before:
                    if thread.name.startswith(("piece-", "node-")):
                        thread.join()

        yield stall


def test_a_silent_bucket_is_passed_over(stall: Stall, make: Make) -> None:
    """Uploads, downloads, deletes and sweeps do without it, and do not wait for S3's timeouts."""
    world, content = make(TWO_OF_FOUR), os.urandom(2 * SEGMENT)
    world.project.upload(BUCKET, "before", content)
    with stall():
        project = world.through(world.store.grant(), BRISK)
        project.upload(BUCKET, "during", content)
        for key in ("before", "during"):
            assert project.download(BUCKET, key).read() == content
        project.delete_object(BUCKET, "before")
        assert len(world.store.endpoint.list_waiting_pieces()) == 2
        sweep_store(world.store)
        silent = [each for each in check_store(world.store, young=True) if "answer" in each.kind]
        assert ["has not answered" in each.where for each in silent] == [True]
    assert sweep_store(world.store).deleted_pieces == 2


def test_a_store_on_a_silent_bucket_is_not_made(
    stall: Stall, nodes: Buckets, tmp_path: Path
) -> None:
    """It is said by our own deadline, and no store is there."""
    options = StoreOptions(redundancy=ONE, nodes=[f"s3://{nodes[1]}/store"])
    with stall(), pytest.raises(TimedOut, match="has not answered for 4 seconds"):
        EmbeddedStore.create(tmp_path / "new", options)
    assert not EmbeddedStore.exists(tmp_path / "new")


def test_a_store_opens_beside_a_silent_bucket(
    stall: Stall, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one whose nodes have no identity yet: that is put off, and reading works."""
    world, content = make(TWO_OF_FOUR), os.urandom(SEGMENT)
    world.project.upload(BUCKET, "k", content)
    described = replace(world.store.description, identified=False)
    write_json(world.store.folder / STORE_FILE, described.to_json())
    with stall():
        store = EmbeddedStore.open(world.store.folder)
        try:
            assert not store.description.identified
            with pytest.raises(TimedOut, match="an earlier request"):
                store.nodes.direct()[1].liveness.require()  # it was given up, not waited for
            project = World._open(store, store.grant(), BRISK)
            assert project.download(BUCKET, "k").read() == content
        finally:
            store.close()
    assert "does it answer?" in caplog.text
