"""gRPC at both ends, error kinds on the wire, metrics, generated code."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import grpc
import pytest

import calque.errors
from calque.errors import (
    CalqueError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    RateLimited,
    ResourceExhausted,
    Unavailable,
    Unsupported,
)
from calque.store.metainfo import CALLS, AllowedPath, Metainfo, MetainfoClient
from calque.store.metainfo.pb import generate
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.service import SERVICE
from calque.store.metainfo.status import KIND_OF, STATUS_OF, status_of
from calque.store.satellite import Endpoint, serve_metainfo
from calque.store.satellite.endpoint import HANDLERS
from tests.store.conftest import SatelliteUnderTest
from tests.store.uplinkish import Client

KINDS = [
    kind
    for kind in vars(calque.errors).values()
    if isinstance(kind, type) and issubclass(kind, CalqueError)
]


class _Failing(Metainfo):
    """A satellite that answers every call with one error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def call(self, name: str, request: object) -> object:  # type: ignore[override]
        raise self.error

    def close(self) -> None:
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_crosses_the_wire(kind: type[CalqueError]) -> None:
    """Class, message, hint and waiting time arrive as they were sent."""
    sent = kind("what happened: ü", hint="do this → then that", retry_after=1.5)
    server = serve_metainfo(_Failing(sent))
    client = MetainfoClient(server.address)
    with pytest.raises(CalqueError) as caught:
        client.get_project(pb.ProjectGetRequest())
    client.close()
    server.stop(0)
    received = caught.value
    assert type(received) is kind
    assert (received.message, received.hint) == (sent.message, sent.hint)
    assert received.retry_after == 1.5


def test_no_status_is_unmapped() -> None:
    """Every gRPC status has a kind, every kind a status, and mistakes are never Internal."""
    assert set(KIND_OF) == set(grpc.StatusCode) - {grpc.StatusCode.OK}
    for kind in KINDS:
        assert status_of(kind("x")) in KIND_OF
    assert STATUS_OF[InvalidInput] is grpc.StatusCode.INVALID_ARGUMENT
    assert status_of(calque.errors.FailedPrecondition("x")) is grpc.StatusCode.FAILED_PRECONDITION
    assert status_of(RateLimited("x")) is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture
def served(tmp_path: Path) -> object:
    """The address of a satellite behind gRPC."""
    endpoint = Endpoint.open(f"sqlite:///{tmp_path / 'meta.db'}")
    server = serve_metainfo(endpoint)
    yield server.address
    server.stop(0)
    endpoint.close()


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"\x0a\xff", bytes(range(1, 255))])
def test_bytes_that_are_no_message(served: str, data: bytes) -> None:
    """Malformed bytes are InvalidArgument for every call, never Internal."""
    with grpc.insecure_channel(served) as channel:
        for call in CALLS.values():
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(call.path)(data, timeout=60)
            allowed = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED}
            assert caught.value.code() in allowed


def test_an_unknown_call(served: str) -> None:
    """A call that does not exist is Unimplemented on the wire, and invalid at the client."""
    with grpc.insecure_channel(served) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"/{SERVICE}/Nonsense")(b"", timeout=60)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    client = MetainfoClient(served)
    with pytest.raises(InvalidInput):
        client.call("Nonsense", pb.ProjectGetRequest())
    client.close()


def test_a_message_too_large_for_the_wire(served: str) -> None:
    """gRPC itself refuses what is far beyond the limit."""
    client = MetainfoClient(served)
    with pytest.raises(ResourceExhausted):
        client.get_object(pb.ObjectGetRequest(encrypted_object_key=b"x" * 20_000_000))
    client.close()


def test_nobody_there() -> None:
    """A satellite that does not answer is Unavailable, which may be retried."""
    client = MetainfoClient("127.0.0.1:1", timeout_s=5)
    with pytest.raises(Unavailable) as caught:
        client.get_project(pb.ProjectGetRequest())
    assert caught.value.retryable
    client.close()


def test_an_address_that_cannot_be_had() -> None:
    """Listening where it is not possible is a configuration error."""
    with pytest.raises(calque.errors.ConfigInvalid):
        serve_metainfo(_Failing(Unsupported("x")), "256.0.0.1:99999")


def test_every_call_has_a_handler() -> None:
    """The table of calls, the handlers and the service description are the same list."""
    described = {method.name for method in pb.DESCRIPTOR.services_by_name["Metainfo"].methods}
    assert set(CALLS) == set(HANDLERS) == described
    for method in pb.DESCRIPTOR.services_by_name["Metainfo"].methods:
        assert CALLS[method.name].request.DESCRIPTOR is method.input_type
        assert CALLS[method.name].response.DESCRIPTOR is method.output_type


def test_generated_code_is_current(tmp_path: Path) -> None:
    """Generating again gives exactly the committed files."""
    generate.generate(tmp_path)
    made = sorted(tmp_path.rglob("*_pb2.py*"))
    assert len(made) == 4
    for path in made:
        assert path.read_text() == (generate.PACKAGE / path.name).read_text()


def test_copy_metrics(satellite: SatelliteUnderTest) -> None:
    """Begins, finishes and committed copies are counted apart, and served over HTTP."""
    client = satellite.client
    client.upload(b"a")
    client.copy(b"a", b"b")
    begun = client.begin_copy(b"a", b"c")
    for _ in range(2):
        client.satellite.finish_copy_object(client.finishing(begun, b"c"))
    client.copy(b"a", b"a")
    with pytest.raises(NotFound):
        client.begin_copy(b"none", b"b")
    server, thread = satellite.endpoint.metrics.serve(0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert "req_copy_object_begin_total 4.0" in text
    assert "req_copy_object_finish_total 4.0" in text
    # Neither a repeated Finish nor a copy onto itself is one more.
    assert "req_copy_object_total 2.0" in text
    assert 'metainfo_errors_total{call="BeginCopyObject",kind="NotFound"} 1.0' in text


def test_a_defect_of_ours_is_unexpected(satellite: SatelliteUnderTest) -> None:
    """A failure nobody planned for shows no inside, only that it happened."""
    endpoint = satellite.endpoint
    client = Client(endpoint, satellite.client.api_key)
    endpoint._satellite.nodes.at = None  # type: ignore[method-assign, assignment]
    upload_id = client.begin(b"a").upload_id
    with pytest.raises(calque.errors.Unexpected, match="BeginSegment"):
        client.remote(upload_id)


@pytest.mark.parametrize("name", ["b" * 20_000, "ü" * 200_000, "a\r\nb\0"])
def test_a_long_name_in_a_message(tmp_path: Path, name: str) -> None:
    """What a request holds is repeated in the answer only so far as a status can carry it."""
    endpoint = Endpoint.open(f"sqlite:///{tmp_path / 'meta.db'}")
    project = endpoint.admin.create_project("p")
    key = endpoint.admin.create_api_key(project.id).restrict(paths=[AllowedPath("first")])
    server = serve_metainfo(endpoint)
    client = MetainfoClient(server.address)
    header = pb.RequestHeader(api_key=bytes(key))
    with pytest.raises(PermissionDenied, match="may not read or list"):
        client.get_object(
            pb.ObjectGetRequest(header=header, bucket=name, encrypted_object_key=b"k")
        )
    client.close()
    server.stop(0)
    endpoint.close()
