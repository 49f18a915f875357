"""TLS and proxies."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from calque.errors import ConfigInvalid, NotFound, Unavailable
from calque.operator import Operator
from calque.values import MIB
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import Open
from tests.servers.gcs_fake import GcsFake
from tests.servers.proxy import Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody has signed but itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def secure(server: S3Server, certificate: Path) -> Iterator[FaultProxy]:
    """SeaweedFS behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with FaultProxy(server.endpoint, tls=context) as proxy:
        yield proxy


def round_trip(op: Operator) -> None:
    data = content(12 * MIB)
    op.write("x", data, tags={"a": "b"})
    op.copy("x", "y")
    assert op.read("y") == data


def test_https(open_at: Open, secure: FaultProxy, certificate: Path) -> None:
    """Every verb over TLS; bodies are guarded by their checksum instead of being hashed."""
    op = open_at(secure.endpoint, ca_bundle=str(certificate))
    round_trip(op)
    parts = secure.seen("PUT", "partNumber=1&")
    assert parts[0].headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"


def test_a_certificate_that_is_not_trusted(open_at: Open, secure: FaultProxy) -> None:
    """Unavailable that says so; nothing is sent."""
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED") as raised:
        open_at(secure.endpoint, layers=()).stat("x")
    assert "ca_bundle" in str(raised.value)
    assert secure.count() == 0


def test_a_plain_proxy(
    open_at: Open, proxy: FaultProxy, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP_PROXY carries plain requests, with the whole URL and its own credentials."""
    monkeypatch.setenv("HTTP_PROXY", proxy.endpoint.replace("//", "//me:pa%20ss@"))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    round_trip(open_at())
    assert all(each.target.startswith(server.endpoint) for each in proxy.log)
    proof = base64.b64encode(b"me:pa ss").decode()
    assert proxy.log[0].headers["proxy-authorization"] == f"Basic {proof}"


class Tunnel:
    """A proxy that knows CONNECT and nothing else."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.asked: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        head = near.recv(65536)
        self.asked.append(head)
        host, port = head.split(b" ")[1].decode().split(":")
        far = socket.create_connection((host, int(port)))
        near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=self._pump, args=(far, near), daemon=True).start()
        self._pump(near, far)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listening.close()


def test_a_tunnel(
    open_at: Open, secure: FaultProxy, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTPS_PROXY is asked to connect; what passes through it is encrypted."""
    tunnel = Tunnel()
    monkeypatch.setenv("HTTPS_PROXY", tunnel.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    round_trip(open_at(secure.endpoint, ca_bundle=str(certificate)))
    assert tunnel.asked
    assert all(each.startswith(b"CONNECT 127.0.0.1:") for each in tunnel.asked)
    tunnel.close()


def test_the_requester_pays(open_at: Open, proxy: FaultProxy) -> None:
    """Every request says so, copies from such a bucket too; without the option none does."""
    paying = open_at(proxy.endpoint, requester_pays=True)
    round_trip(paying)
    list(paying.list())
    paying.delete("x")
    assert {each.headers.get("x-amz-request-payer") for each in proxy.seen()} == {"requester"}
    proxy.reset()
    plain = open_at(proxy.endpoint)
    paying.copy("y", "z", into=plain)
    copies = [each for each in proxy.seen() if "x-amz-copy-source" in each.headers]
    assert {each.headers.get("x-amz-request-payer") for each in copies} == {"requester"}
    proxy.reset()
    plain.read("z")
    assert [each.headers.get("x-amz-request-payer") for each in proxy.seen()] == [None]


def test_a_certificate_of_ones_own_for_the_others(certificate: Path, tmp_path: Path) -> None:
    """GCS takes ca_bundle as S3 does; without it, or with a file that is none, it says why not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with GcsFake() as fake, FaultProxy(fake.endpoint, tls=context) as secured:
        fake.make_bucket("b")
        place = {"endpoint": secured.endpoint, "anonymous": True, "layers": ()}
        op = Operator.from_uri("gs://b", ca_bundle=str(certificate), **place)  # type: ignore[arg-type]
        op.write("x", b"data")
        assert op.read("x") == b"data"
        with pytest.raises(ConfigInvalid, match="CERTIFICATE_VERIFY_FAILED"):
            Operator.from_uri("gs://b", **place).stat("x")  # type: ignore[arg-type]
        az = {"endpoint": secured.endpoint, "account": "a", "anonymous": True, "layers": ()}
        secured.add(Fault(method="HEAD", reply=Reply(404)))
        with pytest.raises(NotFound):
            Operator.from_uri("az://c", ca_bundle=str(certificate), **az).stat("x")  # type: ignore[arg-type]
    for scheme, options in (("gs", place), ("az", az)):
        with pytest.raises(ConfigInvalid, match=r"none\.pem"):
            Operator.from_uri(f"{scheme}://b", ca_bundle=str(tmp_path / "none.pem"), **options)  # type: ignore[arg-type]
