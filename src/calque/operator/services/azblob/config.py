"""The configuration of the Azure Blob service."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from calque.errors import ConfigInvalid
from calque.operator.services.option_values import check_endpoint, flag, text, whole_number
from calque.operator.uri import ServiceUri, refuse_unknown
from calque.values import MIB

SECRETS = frozenset({"key", "sas", "connection_string"})
OPTIONS = SECRETS | {"account", "endpoint", "anonymous", "threshold", "part_size", "ca_bundle"}
ONE_REQUEST_MOST = 256 * MIB
"""The largest source of a synchronous Copy Blob From URL."""
BLOCK_MOST = 4000 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class AzblobConfig:
    """Where the container is, who asks, and how copies are cut.

    ``account`` (``AZURE_STORAGE_ACCOUNT``)
        The storage account's name; also in the URI ``az://ACCOUNT.blob/container/path``.
    ``key`` (``AZURE_STORAGE_KEY``), ``sas`` (``AZURE_STORAGE_SAS_TOKEN``),
    ``connection_string`` (``AZURE_STORAGE_CONNECTION_STRING``)
        Secrets: the account's key, a shared access signature, or both with the endpoint in one.
    ``endpoint``
        Another address of the account, such as an emulator's or a private one.
    ``anonymous``
        Send no credentials: public containers.
    ``ca_bundle`` (``SSL_CERT_FILE``)
        A PEM file of the authorities that the endpoint's certificate may come from.
    ``threshold``
        The largest blob that is copied in one request: 64 MiB, at most 256 MiB.
    ``part_size``
        The size of a block above it: 32 MiB, at most 4000 MiB.

    Without a secret azure-identity finds what the machine has: environment, workload or managed
    identity, the login of `az`.
    """

    container: str
    account: str
    root: str = ""
    endpoint: str = ""
    key: str | None = field(default=None, repr=False)
    sas: str | None = field(default=None, repr=False)
    anonymous: bool = False
    threshold: int = 64 * MIB
    part_size: int = 32 * MIB
    ca_bundle: str | None = None

    def __post_init__(self) -> None:
        if not self.container:
            raise ConfigInvalid(
                "an Azure URI names its container", hint="For example az://container/prefix"
            )
        if not self.account:
            raise ConfigInvalid(
                "the storage account is not known",
                hint="Set AZURE_STORAGE_ACCOUNT or the option account, or write "
                "az://ACCOUNT.blob/container/path.",
            )
        check_endpoint("az", self.endpoint)
        if not 0 <= self.threshold <= ONE_REQUEST_MOST:
            raise ConfigInvalid(f"threshold must be between 0 and {ONE_REQUEST_MOST}")
        if not 1 <= self.part_size <= BLOCK_MOST:
            raise ConfigInvalid(f"part_size must be between 1 and {BLOCK_MOST}")

    @classmethod
    def parse(cls, uri: ServiceUri, options: Mapping[str, object]) -> AzblobConfig:
        """Read the URI and its options, then the environment for what they leave open."""
        refuse_unknown("az", options, OPTIONS)
        account, container, root = _split_uri(uri)
        joined = _connection(
            text("connection_string", options.get("connection_string")) or _environment(options)
        )
        own = {
            name: text(name, options.get(name)) for name in ("account", "key", "sas", "endpoint")
        }
        anonymous = flag("anonymous", options.get("anonymous", False))
        name = account or own["account"] or joined.get("AccountName")
        name = name or os.environ.get("AZURE_STORAGE_ACCOUNT", "")
        key = own["key"] or joined.get("AccountKey")
        sas = own["sas"] or joined.get("SharedAccessSignature")
        if key is None and sas is None and not anonymous:
            key = os.environ.get("AZURE_STORAGE_KEY") or None
            sas = None if key else os.environ.get("AZURE_STORAGE_SAS_TOKEN") or None
        endpoint = own["endpoint"] or joined.get("BlobEndpoint") or _public(name, joined)
        return cls(
            container=container,
            account=name or _account_in(endpoint),
            root=root.strip("/"),
            endpoint=endpoint.rstrip("/"),
            key=None if anonymous else key,
            sas=None if anonymous or not sas else sas.lstrip("?"),
            anonymous=anonymous,
            threshold=whole_number("threshold", options.get("threshold", 64 * MIB)),
            part_size=whole_number("part_size", options.get("part_size", 32 * MIB)),
            ca_bundle=text("ca_bundle", options.get("ca_bundle")),
        )


def _split_uri(uri: ServiceUri) -> tuple[str | None, str, str]:
    """Account, container and root. A container's name has no dot, so the two forms are told."""
    if "." not in uri.host:
        return None, uri.host, uri.path
    container, _, root = uri.path.partition("/")
    return uri.host.split(".")[0], container, root


def _environment(options: Mapping[str, object]) -> str | None:
    """The connection string of the environment, unless options already say who asks."""
    if {"key", "sas", "anonymous", "account", "endpoint"} & options.keys():
        return None
    return os.environ.get("AZURE_STORAGE_CONNECTION_STRING") or None


def _connection(joined: str | None) -> dict[str, str]:
    if joined is None:
        return {}
    pairs = (part.partition("=") for part in joined.split(";") if part.strip())
    found = {name.strip(): value.strip() for name, equals, value in pairs if equals}
    if not {"AccountName", "BlobEndpoint"} & found.keys():
        raise ConfigInvalid(
            "the connection string names neither AccountName nor BlobEndpoint",
            hint="Copy it whole from the portal: AccountName=…;AccountKey=…;EndpointSuffix=…",
        )
    return found


def _public(account: str, joined: Mapping[str, str]) -> str:
    protocol = joined.get("DefaultEndpointsProtocol", "https")
    suffix = joined.get("EndpointSuffix", "core.windows.net")
    return f"{protocol}://{account}.blob.{suffix}" if account else "https://"


def _account_in(endpoint: str) -> str:
    host = urlsplit(endpoint).hostname or ""
    return host.split(".")[0] if ".blob." in host else ""
