"""A satellite and its relay behind TLS: `calque serve --tls-cert --tls-key` and grpcs://."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from calque.errors import ConfigInvalid, Unavailable
from calque.operator import Operator
from calque.store.embedded import EmbeddedStore
from calque.store.metainfo.tls import ServerCertificate, channel_credentials
from calque.store.open_project import open_project
from calque.store.serve import serve_store
from tests.command import run_command, run_command_text
from tests.program import COMMAND, Program

PKCS8 = PrivateFormat.PKCS8


def write_pair(folder: Path, name: str, address: str = "127.0.0.1") -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PKCS8, NoEncryption()))
    return files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pairs: ``server`` and ``other``."""
    folder = tmp_path_factory.mktemp("tls")
    write_pair(folder, "server")
    write_pair(folder, "other")
    return folder


@pytest.fixture(scope="module")
def served(files: Path) -> Iterator[dict[str, str]]:
    """A real `calque serve` with TLS: its address and access."""
    process = Program(
        COMMAND, "serve", files / "data", "--port", "0", "--json",
        "--tls-cert", files / "server.pem", "--tls-key", files / "server.key",
    )  # fmt: skip
    said = ""
    for line in iter(process.stdout.readline, ""):
        said += line
        if line.startswith("}"):
            break
    yield json.loads(said)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    process.close()


def test_a_store_over_tls(served: dict[str, str], files: Path) -> None:
    """Metadata and pieces travel encrypted; the authority may come from the environment."""
    assert served["address"].startswith("grpcs://")
    content = os.urandom(300_000)
    ca = files / "server.pem"
    with open_project(served["address"], access=served["access"], ca=ca) as project:
        project.create_bucket("safe")
        project.upload("safe", "k", content)
        project.copy_object("safe", "k", "safe", "copy")
        assert project.download("safe", "copy").read() == content
    with Operator.from_uri(
        "calque://safe", project=served["address"], access=served["access"], ca=str(ca)
    ) as op:
        assert op.read("copy") == content
    environment = {
        "CALQUE_PROJECT": served["address"],
        "CALQUE_ACCESS": served["access"],
        "CALQUE_CA": str(ca),
    }
    shown = run_command("cat", "calque://safe/k", env={**os.environ, **environment})
    assert shown.stdout == content


def test_a_named_store(
    served: dict[str, str], files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """calque.toml may name the authorities of a store."""
    monkeypatch.chdir(tmp_path)
    Path("calque.toml").write_text(
        f'[stores.safe]\nlocation = "{served["address"]}"\naccess = "{served["access"]}"\n'
        f'ca = "{files / "server.pem"}"\n'
    )
    with open_project("@safe") as project:
        assert project.create_bucket("named").name == "named"


def test_a_server_nobody_vouches_for(served: dict[str, str], files: Path) -> None:
    """Another authority, or only the public ones: no call is made, and no key is sent."""
    for ca in (files / "other.pem", None):
        with (
            open_project(served["address"], access=served["access"], ca=ca) as project,
            pytest.raises(Unavailable),
        ):
            project.stat_bucket("safe")


def test_a_certificate_that_is_renewed(tmp_path: Path) -> None:
    """Clients that come after it meet the new one; the server was not restarted."""
    certificate, key = write_pair(tmp_path, "server")
    new_certificate, new_key = write_pair(tmp_path, "renewed")
    old = tmp_path / "old.pem"
    old.write_bytes(certificate.read_bytes())
    with (
        closing(EmbeddedStore.create(tmp_path / "data")) as store,
        serve_store(store, tls=ServerCertificate(certificate, key)) as served,
    ):
        access = replace(store.grant(), address=served.address)
        with open_project(served.address, access=access, ca=old) as project:
            project.create_bucket("safe")
        new_key.replace(key)
        new_certificate.replace(certificate)
        with open_project(served.address, access=access, ca=certificate) as project:
            assert project.stat_bucket("safe").name == "safe"
        with (
            open_project(served.address, access=access, ca=old) as project,
            pytest.raises(Unavailable),
        ):
            project.stat_bucket("safe")


def test_plain_and_tls_do_not_meet(served: dict[str, str]) -> None:
    """grpc:// to a TLS port fails; nothing falls back to an open connection."""
    plain = served["address"].replace("grpcs://", "grpc://")
    with open_project(plain, access=served["access"]) as project, pytest.raises(Unavailable):
        project.stat_bucket("safe")


def test_files_that_are_no_pair(files: Path) -> None:
    """Each wrong file is named, and nothing of a key is shown."""
    certificate, key, other = (files / name for name in ("server.pem", "server.key", "other.key"))
    locked = files / "locked.key"
    locked.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PKCS8, BestAvailableEncryption(b"secret")
        )
    )
    for pair, match in (
        ((certificate, other), "is not that of the certificate"),
        ((key, key), "holds no certificate"),
        ((certificate, certificate), "holds no private key"),
        ((certificate, locked), "holds no private key"),
        ((files / "absent.pem", key), "cannot be read"),
    ):
        with pytest.raises(ConfigInvalid, match=match):
            ServerCertificate(*pair)
    with pytest.raises(ConfigInvalid, match="holds no certificate"):
        channel_credentials(key)


def test_half_a_pair(tmp_path: Path, files: Path) -> None:
    """A certificate without its key is refused before a store is made."""
    done = run_command_text("serve", tmp_path / "data", "--tls-cert", files / "server.pem")
    assert done.returncode != 0
    assert "--tls-key" in done.stderr
    assert not (tmp_path / "data").exists()
