"""TLS at both ends: certificates from files, checked before they are used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from calque.errors import ConfigInvalid

FilePath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """How a server proves who it is: checked when it is made.

    ``certificate`` is a PEM file with the server's certificate and those that lead to its
    authority; ``key`` holds the private key of the first, without a passphrase. ConfigInvalid
    names the file that is wrong; nothing of the key is shown.
    """

    certificate: FilePath
    key: FilePath

    def __post_init__(self) -> None:
        _require_pair(_read(self.certificate), _read(self.key), self.certificate, self.key)

    def credentials(self) -> grpc.ServerCredentials:
        """What gRPC takes; the files are read now."""
        return grpc.ssl_server_credentials([(_read(self.key), _read(self.certificate))])


def channel_credentials(authorities: FilePath | None = None) -> grpc.ChannelCredentials:
    """What a client needs to know a server: a PEM file of authorities, or those known to gRPC."""
    if authorities is None:
        return grpc.ssl_channel_credentials()
    trusted = _read(authorities)
    _certificates(trusted, authorities)
    return grpc.ssl_channel_credentials(trusted)


def _require_pair(chain: bytes, secret: bytes, certificate: FilePath, key: FilePath) -> None:
    first = _certificates(chain, certificate)[0]
    try:
        private = load_pem_private_key(secret, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigInvalid(
            f"{os.fspath(key)} holds no private key in PEM without a passphrase"
        ) from error
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != first.public_key().public_bytes(*form):
        raise ConfigInvalid(
            f"the key in {os.fspath(key)} is not that of the certificate in "
            f"{os.fspath(certificate)}"
        )


def _certificates(data: bytes, file: FilePath) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError as error:
        raise ConfigInvalid(f"{os.fspath(file)} holds no certificate in PEM") from error


def _read(file: FilePath) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigInvalid(f"{os.fspath(file)} cannot be read: {error.strerror}") from error
