"""What a client has given up does not happen later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc
import pytest
from google.protobuf.message import Message

from calque.errors import Aborted, CalqueError, NotFound, TimedOut, Unavailable
from calque.store.callers import act_for_caller
from calque.store.metabase.engine.callers import require_caller
from calque.store.metabase.engine.locks import lock_keys
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.objects.delete_object import DeleteObject, delete_object
from calque.store.metainfo import Metainfo, MetainfoClient
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.satellite import serve_metainfo
from tests.servers.cutting import CuttingProxy
from tests.store.conftest import SatelliteUnderTest
from tests.store.uplinkish import Client
from tests.store.world import World


def test_nothing_is_begun_for_a_caller_that_is_gone(world: World) -> None:
    """A delete and a copy whose caller left before they began leave every row as it was."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    with act_for_caller(lambda: False):
        with world.unchanged(Aborted, match="given up"):
            world.delete(world.at("a"))
        with world.unchanged(Aborted, match="given up"):
            world.finish(request)


def test_nothing_is_committed_for_a_caller_that_left(world: World) -> None:
    """A caller that leaves while the work runs: it is taken back before the commit."""
    world.upload("a")
    answers = iter([True, False])
    with act_for_caller(lambda: next(answers)), world.unchanged(Aborted):
        world.delete(world.at("a"))


def test_a_caller_that_leaves_in_a_line(world: World) -> None:
    """Behind another writer the wait is long; whoever leaves it takes nothing along."""
    world.upload("a")
    holding, go_on, left = threading.Event(), threading.Event(), threading.Event()

    def hold(transaction: Transaction) -> None:
        lock_keys(transaction, [world.at("a")])
        holding.set()
        assert go_on.wait(60)

    def delete() -> None:
        with act_for_caller(lambda: not left.is_set()):
            delete_object(world.database, DeleteObject(world.at("a")))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(world.database.write, hold)
        assert holding.wait(60)
        second = pool.submit(delete)
        left.set()
        go_on.set()
        first.result(60)
        with pytest.raises(Aborted):
            second.result(60)
    assert world.download(world.at("a"))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_caller_that_leaves_before_a_shared_commit(world: World) -> None:
    """Its own work was done and the one after it still runs: it is taken back all the same."""
    for key in "abc":
        world.upload(key)
    leading, go_on, between, left = (threading.Event() for _ in range(4))

    def lead(transaction: Transaction) -> None:
        leading.set()
        assert go_on.wait(60)

    def delete(key: str, is_there: Callable[[], bool]) -> None:
        with act_for_caller(is_there):
            delete_object(world.database, DeleteObject(world.at(key)))

    def last(transaction: Transaction) -> None:
        between.set()
        assert left.wait(60)

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(world.database.write, lead)
        assert leading.wait(60)
        gone = pool.submit(delete, "a", lambda: not left.is_set())
        _wait_for_turns(world, 2)
        stays = pool.submit(delete, "b", lambda: True)
        _wait_for_turns(world, 3)
        behind = pool.submit(world.database.write, last)
        _wait_for_turns(world, 4)
        go_on.set()
        assert between.wait(60)
        left.set()
        for each in (first, stays, behind):
            each.result(60)
        with pytest.raises(Aborted):
            gone.result(60)
    assert world.download(world.at("a"))
    with pytest.raises(NotFound):
        world.download(world.at("b"))


def _wait_for_turns(world: World, count: int) -> None:
    shared = world.database._shared
    assert shared is not None
    end = time.monotonic() + 60
    while len(shared._queue) < count:
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_copy_of_one_trip_waits_for_no_lock(world: World) -> None:
    """Whoever leaves while another holds the source gets no copy, however long that lasts."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    holding, go_on = threading.Event(), threading.Event()
    answers = iter([True])

    def hold(transaction: Transaction) -> None:
        lock_keys(transaction, [world.at("a")])
        holding.set()
        assert go_on.wait(120)

    def copy() -> None:
        with act_for_caller(lambda: next(answers, False)):
            world.finish(request)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(world.database.write, hold)
        assert holding.wait(60)
        try:
            with pytest.raises(Aborted):
                pool.submit(copy).result(60)
        finally:
            go_on.set()
        first.result(60)
    with pytest.raises(NotFound):
        world.download(world.at("b"))
    assert world.copy(world.at("a"), world.at("b")).stream_id


class Waiting(Metainfo):
    """A satellite whose deletes wait until they are told to go on."""

    def __init__(self, satellite: Metainfo) -> None:
        self._satellite = satellite
        self.arrived, self.go_on, self.ended = (threading.Event() for _ in range(3))
        self.outlives_caller = False
        self.deleting: list[bytes] = []
        self.errors: list[CalqueError] = []

    def call(self, name: str, request: Message) -> Message:
        if not isinstance(request, pb.ObjectDeleteRequest):
            return self._satellite.call(name, request)
        self.deleting.append(request.encrypted_object_key)
        self.arrived.set()
        assert self.go_on.wait(60)
        try:
            while self.outlives_caller and is_called():
                time.sleep(0.01)
            return self._satellite.call(name, request)
        except CalqueError as error:
            self.errors.append(error)
            raise
        finally:
            self.ended.set()

    def close(self) -> None:
        """The fixture closes the satellite."""


def is_called() -> bool:
    """Whether the caller of this thread is still there."""
    try:
        require_caller()
    except Aborted:
        return False
    return True


@dataclass
class Line:
    """A client of a satellite that has one thread, behind a proxy that cuts."""

    satellite: Waiting
    client: Client
    proxy: CuttingProxy


@pytest.fixture
def line(satellite: SatelliteUnderTest) -> Iterator[Line]:
    waiting = Waiting(satellite.endpoint)
    server = serve_metainfo(waiting, threads=1)
    with CuttingProxy(server.address) as proxy:
        remote = MetainfoClient(proxy.address)
        yield Line(waiting, Client(remote, satellite.client.api_key), proxy)
        remote.close()
    server.stop(0)


def test_a_cut_line(satellite: SatelliteUnderTest, line: Line) -> None:
    """The line is cut while a delete is under way in the satellite: the object stays."""
    satellite.client.upload(b"k")
    line.satellite.outlives_caller = True
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(line.client.delete, b"k")
        assert line.satellite.arrived.wait(60)
        line.proxy.cut()
        with pytest.raises(Unavailable):
            answer.result(60)
    line.satellite.go_on.set()
    assert line.satellite.ended.wait(60)
    assert [type(error) for error in line.satellite.errors] == [Aborted]
    assert satellite.client.get(b"k").stream_id


def wait_for_server(client: MetainfoClient) -> None:
    """Return when the server has read all that came before on the client's connection.

    A method that it does not know is answered without a thread of its pool.
    """
    with pytest.raises(grpc.RpcError) as told:
        client._channel.unary_unary("/nothing/Nothing", None, None)(b"", timeout=60)
    assert told.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_call_that_waited_for_a_thread(satellite: SatelliteUnderTest, line: Line) -> None:
    """A delete that was given up in the line of calls never reaches the endpoint."""
    satellite.client.upload(b"first")
    satellite.client.upload(b"second")
    hasty = MetainfoClient(line.proxy.address, timeout_s=0.5)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(line.client.delete, b"first")
        assert line.satellite.arrived.wait(60)
        with pytest.raises(TimedOut):
            Client(hasty, satellite.client.api_key).delete(b"second")
        wait_for_server(hasty)
        line.satellite.go_on.set()
        assert answer.result(60).deleted
    # The one thread serves calls in their order, so this one comes after the given-up one.
    line.client.get(b"second")
    assert line.satellite.deleting == [b"first"]
    hasty.close()


def test_a_call_in_its_last_moment(satellite: SatelliteUnderTest, line: Line) -> None:
    """The caller's clock runs out before the satellite's: what is that short is not begun."""
    satellite.client.upload(b"k")
    line.satellite.go_on.set()
    hasty = MetainfoClient(line.proxy.address, timeout_s=0.15)
    with pytest.raises(CalqueError):
        Client(hasty, satellite.client.api_key).delete(b"k")
    assert line.client.get(b"k").stream_id
    assert line.satellite.deleting == []
    hasty.close()
