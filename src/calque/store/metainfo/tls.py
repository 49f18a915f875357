"""TLS at both ends: certificates from files, checked before they are used."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

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
T = TypeVar("T")

_log = logging.getLogger(__name__)


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
        """What gRPC takes; at each new connection files that were renewed are read again."""
        renewed = Renewed(self, self._configuration)
        # None is no change to gRPC, which its types do not know.
        return grpc.dynamic_ssl_server_credentials(renewed.current(), renewed.renew)  # type: ignore[arg-type]

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(_read(self.key), _read(self.certificate))]
        )

    def stamp(self) -> object:
        """What changes when one of the files does."""
        return [_stamp(file) for file in (self.certificate, self.key)]


class Renewed(Generic[T]):
    """What is made of a certificate, and made anew when its files have changed.

    They are renewed one after the other: while they do not fit, what was made before stays.
    """

    def __init__(self, certificate: ServerCertificate, make: Callable[[], T]) -> None:
        self._certificate = certificate
        self._make = make
        self._stamp = certificate.stamp()
        self._made = make()

    def current(self) -> T:
        """What the files say now, or said when they last fitted."""
        self.renew()
        return self._made

    def renew(self) -> T | None:
        """What was made anew just now; None where nothing has changed."""
        stamp = self._certificate.stamp()
        if stamp == self._stamp:
            return None
        self._stamp = stamp  # tried once for each change: what mends the files is another
        try:
            replace(self._certificate)  # which checks that they fit
            self._made = self._make()
        except ConfigInvalid as error:
            _log.warning("the certificate stays what it was: %s", error.message)
            return None
        return self._made


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


def _stamp(file: FilePath) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(file: FilePath) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigInvalid(f"{os.fspath(file)} cannot be read: {error.strerror}") from error
