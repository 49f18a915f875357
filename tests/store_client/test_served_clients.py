"""Clients of a served store that are slow, or gone without a word."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from calque.errors import Unavailable
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.model.records import now_us
from calque.store.metabase.objects.delete_batch import BATCH
from calque.store.metainfo import keepalive
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.relay.server import PieceRelay
from calque.store.satellite.server import DEFAULT_THREADS
from calque.store.serve import serve_store
from calque.store.upkeep.expire import sweep_store
from tests.servers.cutting import CuttingProxy


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """A new store with a bucket."""
    made = EmbeddedStore.create(tmp_path / "store")
    with open_project(tmp_path / "store") as project:
        project.create_bucket("bucket")
    yield made
    made.close()


def _client(store: EmbeddedStore, address: str) -> Project:
    return open_project(address, access=replace(store.grant(), address=address))


class _Slow:
    """Chunks of which the second comes when it is told to."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()

    def chunks(self) -> Iterator[bytes]:
        yield bytes(1 << 20)
        self.begun.release()
        assert self.go_on.wait(60)
        yield bytes(1 << 20)


def test_slow_uploads_keep_nobody_waiting(store: EmbeddedStore) -> None:
    """However many uploads wait for their bytes, calls are answered and other pieces pass."""
    slow = _Slow()
    count = DEFAULT_THREADS + 1
    with (
        serve_store(store) as served,
        _client(store, served.address) as project,
        _client(store, served.address) as other,
        ThreadPoolExecutor(count + 1) as pool,
    ):
        uploads = [
            pool.submit(project.upload, "bucket", f"slow{number}", slow.chunks())
            for number in range(count)
        ]
        try:
            for _ in uploads:
                assert slow.begun.acquire(timeout=30)
            pool.submit(other.upload, "bucket", "quick", bytes(100_000)).result(30)
            found = pool.submit(other.download, "bucket", "quick").result(30)
            assert pool.submit(found.read).result(30) == bytes(100_000)
        finally:
            slow.go_on.set()
        assert {upload.result(30).size for upload in uploads} == {2 << 20}


def test_a_peer_that_is_gone_without_a_word_is_noticed(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is told, and the server keeps no thread for an upload that cannot end."""
    monkeypatch.setattr(keepalive, "ASK_EVERY_MS", 1000)
    monkeypatch.setattr(keepalive, "ANSWER_WITHIN_MS", 4000)
    arrived, ended = threading.Event(), threading.Event()
    put = PieceRelay._put

    def watched(self: PieceRelay, *given: object) -> bytes:
        arrived.set()
        try:
            return put(self, *given)  # type: ignore[arg-type]
        finally:
            ended.set()

    monkeypatch.setattr(PieceRelay, "_put", watched)
    slow = _Slow()
    with (
        serve_store(store) as served,
        CuttingProxy(served.address.removeprefix("grpc://")) as proxy,
        _client(store, f"grpc://{proxy.address}") as project,
        ThreadPoolExecutor(1) as pool,
    ):
        upload = pool.submit(project.upload, "bucket", "key", slow.chunks())
        try:
            assert slow.begun.acquire(timeout=30)
            assert arrived.wait(30)
            proxy.silence()
            assert ended.wait(30)
        finally:
            slow.go_on.set()
        with pytest.raises(Unavailable):
            upload.result(30)


def test_a_long_sweep_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """Who stops a server waits for a batch, not for all that expired; the rest goes later."""
    clock = [now_us()]
    store = EmbeddedStore.create(tmp_path / "store", clock=lambda: clock[0])
    with open_project(tmp_path / "store") as project:
        project.create_bucket("bucket")
        for number in range(BATCH + 10):
            project.upload(
                "bucket", f"{number}", b"x", expires=datetime.now(UTC) + timedelta(hours=1)
            )
    clock[0] += 2 * 3600 * 1_000_000
    assert sweep_store(store, lambda: True).expired_objects == BATCH
    assert sweep_store(store).expired_objects == 10
    store.close()
