"""Copies through the client in parts: resumed where they stopped, pinned, and nothing left."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from calque.errors import (
    Aborted,
    CheckpointInvalid,
    ConditionNotMatch,
    IntegrityError,
    PermissionDenied,
)
from calque.operator import Operator
from calque.operator import copier as copier_module
from calque.operator.checkpoint import _digest
from calque.operator.layers import ConcurrencyLimit
from calque.operator.layers.chain import Call
from tests.operator.services.s3.server import make_bucket
from tests.servers.gcs_fake import GcsFake
from tests.servers.proxy import Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server

MIB = 1024 * 1024
PART = 5 * MIB
SIZE = 3 * PART + 17
_numbers = count()


@pytest.fixture(scope="module")
def proxy(seaweed: S3Server) -> Iterator[FaultProxy]:
    make_bucket(seaweed, "streamed")
    with FaultProxy(seaweed.endpoint) as running:
        yield running


@pytest.fixture
def into(seaweed: S3Server, proxy: FaultProxy) -> Iterator[Operator]:
    """A root of its own, with small parts."""
    with Operator.from_uri(
        f"s3://streamed/t{next(_numbers)}",
        endpoint_url=proxy.endpoint,
        region=seaweed.region,
        access_key_id=seaweed.access_key,
        secret_access_key=seaweed.secret_key,
        write_part=PART,
        key_order=False,
    ) as operator:
        proxy.reset()
        yield operator


@pytest.fixture
def source(tmp_path: Path) -> Operator:
    (tmp_path / "large").write_bytes(os.urandom(SIZE))
    return Operator.from_uri(tmp_path)


def sent_parts(proxy: FaultProxy) -> list[str]:
    """The numbers of the parts that were sent, the marker left out."""
    sent = [
        each.target for each in proxy.log if each.method == "PUT" and "partNumber" in each.target
    ]
    numbers = [target.partition("partNumber=")[2].partition("&")[0] for target in sent]
    return sorted(number for number in numbers if number != "10000")


def test_it_goes_on_where_it_stopped(source: Operator, into: Operator, proxy: FaultProxy) -> None:
    """Parts that the server holds are not sent again; the checkpoint is plain text."""
    copier = source.copier("large", "copy", into=into, stream=True, stream_parts=True, concurrent=1)
    assert copier.route == "through the client"
    assert next(copier) == PART
    checkpoint = copier.pause().to_json()
    before = sent_parts(proxy)
    proxy.reset()
    resumed = source.resume(checkpoint, into=into)
    assert resumed.route == "through the client"
    assert next(resumed) >= PART
    made = resumed.run()
    assert made.size == SIZE
    assert not set(before) & set(sent_parts(proxy))
    assert sorted(before + sent_parts(proxy)) == ["1", "2", "3", "4"]
    assert into.read("copy") == source.read("large")
    assert list(into.leftovers()) == []
    assert source.resume(resumed.checkpoint(), into=into).run().size == SIZE


def test_a_source_that_changes_is_found_and_nothing_is_left(
    source: Operator, into: Operator, tmp_path: Path
) -> None:
    """Midway: no target, no upload. Before a resume: the checkpoint is refused."""
    copier = source.copier("large", "copy", into=into, stream=True, stream_parts=True, concurrent=1)
    next(copier)
    (tmp_path / "large").write_bytes(os.urandom(SIZE))
    with pytest.raises(ConditionNotMatch):
        copier.run()
    assert not into.exists("copy")
    assert list(into.leftovers()) == []
    again = source.copier("large", "copy", into=into, stream=True, stream_parts=True, concurrent=1)
    next(again)
    checkpoint = again.pause()
    (tmp_path / "large").write_bytes(os.urandom(SIZE))
    with pytest.raises(CheckpointInvalid):
        source.resume(checkpoint, into=into)
    for leftover in list(into.leftovers()):
        into.remove_leftover(leftover)


def test_conditions_and_metadata_hold(source: Operator, into: Operator) -> None:
    """``if_not_exists`` is kept by the commit; content headers come along."""
    origin = Operator.from_uri("memory://")
    origin.write("large", os.urandom(SIZE), content_type="text/x-odd", user={"colour": "red"})
    made = origin.copy(
        "large", "copy", into=into, stream=True, stream_parts=True, if_not_exists=True
    )
    assert made.etag is not None
    found = into.stat("copy")
    assert (found.content_type, dict(found.user)) == ("text/x-odd", {"colour": "red"})
    with pytest.raises(ConditionNotMatch):
        origin.copy("large", "copy", into=into, stream=True, stream_parts=True, if_not_exists=True)
    assert list(into.leftovers()) == []


def test_many_copies_share_few_places(source: Operator, into: Operator, tmp_path: Path) -> None:
    """Parts wait for those before them, and for a place: none waits for one that never comes."""
    names = ["large", "second", "third"]
    for name in names[1:]:
        (tmp_path / name).write_bytes(os.urandom(SIZE))
    limit = ConcurrencyLimit(2)
    here, there = source.layer(limit), into.layer(limit)

    def copy(name: str) -> int:
        wanted = {"stream": True, "stream_parts": True, "concurrent": 4}
        return here.copy(name, name, into=there, **wanted).size

    with ThreadPoolExecutor(3) as pool:
        assert [each.result(timeout=300) for each in [pool.submit(copy, n) for n in names]] == (
            [SIZE] * 3
        )
    for name in names:
        assert into.read(name) == source.read(name)


def test_a_part_that_fails_keeps_nobody_waiting(
    source: Operator, into: Operator, proxy: FaultProxy
) -> None:
    """The first part never arrives: its error is told, though others wait to be hashed after it."""
    refused = Reply(403, {}, b"<Error><Code>AccessDenied</Code></Error>")
    proxy.add(Fault(method="PUT", contains="partNumber=1&", times=None, reply=refused))
    wanted = {"stream": True, "stream_parts": True, "concurrent": 4}
    with pytest.raises(PermissionDenied):
        source.copy("large", "copy", into=into, **wanted)
    assert not into.exists("copy")
    assert list(into.leftovers()) == []


def _part_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads that bring parts, and were not there before."""
    now = set(threading.enumerate()) - before
    return [thread for thread in now if "calque-part" in thread.name]


def test_an_abort_waits_for_no_place_that_others_hold(
    source: Operator, into: Operator, proxy: FaultProxy
) -> None:
    """All places are held by somebody else, for as long as he likes: the copy ends all the same."""
    limit = ConcurrencyLimit(2)
    here, there = source.layer(limit), into.layer(limit)
    wanted = {"stream": True, "stream_parts": True, "concurrent": 4}
    copier = here.copier("large", "copy", into=there, **wanted)
    assert copier.open_parts() is not None
    checkpoint = here.copier("large", "other", into=there, **wanted).open_parts()
    assert checkpoint is not None
    resumed = here.resume(checkpoint, into=there, **wanted)
    let_go, held = threading.Event(), threading.Barrier(3)

    def hold() -> None:
        with limit.place(Call("read", "another")):
            held.wait(60)
            let_go.wait(120)

    with ThreadPoolExecutor(3) as pool:
        holders = [pool.submit(hold) for _ in range(2)]
        held.wait(60)
        before = set(threading.enumerate())  # of earlier copies, with nothing to do
        driven = pool.submit(resumed.run)
        while not (parts := _part_threads(before)):
            time.sleep(0.01)
        # What clears up needs a place too, and gets one as soon as there is one.
        stopped = threading.Thread(target=resumed.abort)
        stopped.start()
        for thread in {*parts, *_part_threads(before)}:
            thread.join(60)
            assert not thread.is_alive(), "a part still waits for a place"
        let_go.set()
        assert isinstance(driven.exception(timeout=60), Aborted)
        for each in holders:
            each.result(timeout=60)
        stopped.join(60)
    assert not into.exists("other")


@pytest.mark.parametrize("forged", [5, "crc32c:no", "crc32c:AAAA", "crc32c:AAAAAA==", [], ["x"]])
def test_forged_checksums_of_a_checkpoint(tmp_path: Path, forged: object) -> None:
    """Whoever writes them by hand gets an error of ours, and no target."""
    with GcsFake() as fake:
        fake.make_bucket("forged")
        origin = Operator.from_uri("gs://forged", endpoint=fake.endpoint, anonymous=True)
        origin.write("large", os.urandom(9 * MIB))
        into = Operator.from_uri(tmp_path)
        wanted = {"into": into, "stream": True, "stream_parts": True, "chunk": 4 * MIB}
        copier = origin.copier("large", "copy", **wanted, concurrent=1)
        next(copier)
        body = json.loads(copier.pause().to_json())
        del body["digest"]
        for part in body["payload"]["parts"]:
            assert isinstance(part[4], str), "a CRC of each part stands in the checkpoint"
            part[4] = forged
        with pytest.raises((CheckpointInvalid, IntegrityError)):
            origin.resume(json.dumps({**body, "digest": _digest(body)}), **wanted).run()
        assert not into.exists("copy")


def test_a_source_that_tells_another_kind_of_checksum_now(tmp_path: Path) -> None:
    """CRCs of another kind than the source's say nothing of it, and stand in nobody's way."""
    with GcsFake() as fake:
        fake.make_bucket("other")
        origin = Operator.from_uri("gs://other", endpoint=fake.endpoint, anonymous=True)
        data = os.urandom(9 * MIB)
        origin.write("large", data)
        into = Operator.from_uri(tmp_path)
        wanted = {"into": into, "stream": True, "stream_parts": True, "chunk": 4 * MIB}
        copier = origin.copier("large", "copy", **wanted, concurrent=1)
        next(copier)
        body = json.loads(copier.pause().to_json())
        del body["digest"]
        for part in body["payload"]["parts"]:
            part[4] = "crc64nvme:AAAAAAAAAAE="
        origin.resume(json.dumps({**body, "digest": _digest(body)}), **wanted).run()
        assert into.read("copy") == data


def test_a_pause_waits_for_no_part_that_does_not_arrive(
    source: Operator, into: Operator, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has arrived is kept, what hangs is given up, and sent again by whoever goes on."""
    monkeypatch.setattr(copier_module, "_PAUSE_SECONDS", 0.5)
    proxy.add(Fault(method="PUT", contains="partNumber=3&", times=None, delay=300.0))
    wanted = {"into": into, "stream": True, "stream_parts": True}
    copier = source.copier("large", "copy", **wanted, concurrent=4)
    next(copier)
    next(copier)
    kept = copier.pause().to_json()
    proxy.reset()
    source.resume(kept, **wanted).run()
    assert sent_parts(proxy) == ["3"]
    assert into.read("copy") == source.read("large")
