"""Who asks: the account's key, a shared access signature, or azure-identity; and how a source is
opened to the service that copies from it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any

from azure.storage.blob import generate_blob_sas

from calque.errors import ConfigInvalid, MissingExtra, PermissionDenied, Unsupported
from calque.operator.services.azblob.config import AzblobConfig

SCOPE = "https://storage.azure.com/.default"
SOURCE_LIFETIME = timedelta(minutes=30)
"""How long a source's signature is good for: it is made anew for each block."""
_RENEW_BEFORE = 300.0
"""Seconds before its end at which a token is renewed: it must outlast the request it goes with."""
_PERMISSIONS = {"GET": "r", "HEAD": "r", "PUT": "cw", "DELETE": "d"}
_SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


class Credentials:
    """Signs requests and opens sources; safe for threads."""

    def __init__(self, config: AzblobConfig) -> None:
        self._config = config
        self._key = _decode(config.key)
        self._lock = threading.Lock()
        self._identity: Any = None
        self._token: Any = None

    def query(self) -> str:
        """What a query ends with: the shared access signature, where there is one."""
        return self._config.sas or "" if self._key is None else ""

    def sign(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: dict[str, str],
        length: int = 0,
    ) -> None:
        """Add the date and what proves who asks. ``path`` is the encoded path of the URL."""
        headers["x-ms-date"] = formatdate(usegmt=True)
        if self._key is not None:
            signed = _text_to_sign(self._config.account, method, path, query, headers, length)
            digest = hmac.new(self._key, signed.encode(), hashlib.sha256).digest()
            proof = base64.b64encode(digest).decode()
            headers["Authorization"] = f"SharedKey {self._config.account}:{proof}"
        elif not (self._config.sas or self._config.anonymous):
            headers["Authorization"] = f"Bearer {self._bearer()}"

    def sign_source(self, blob: str) -> tuple[str, dict[str, str]]:
        """A query and headers by which another request may read this account's blob.

        They are secrets: short-lived, made for one request, never kept.
        """
        config = self._config
        if self._key is not None:
            query = generate_blob_sas(
                config.account,
                config.container,
                blob,
                account_key=config.key,
                permission="r",
                expiry=datetime.now(UTC) + SOURCE_LIFETIME,
            )
            return query, {}
        if config.sas:
            return config.sas, {}
        if config.anonymous:
            return "", {}
        return "", {"x-ms-copy-source-authorization": f"Bearer {self._bearer()}"}

    def presign(self, method: str, blob: str, seconds: int) -> str:
        """The query of a request that others send; a secret of theirs from then on."""
        config = self._config
        if config.anonymous:
            return ""
        # A signature that we were given is not handed on: it may allow more than was asked for.
        if self._key is None:
            raise Unsupported(
                "Azure signs requests for others by the account's key alone",
                hint="Open the container with key or connection_string.",
            )
        query: str = generate_blob_sas(
            config.account,
            config.container,
            blob,
            account_key=config.key,
            permission=_PERMISSIONS[method],
            expiry=datetime.now(UTC) + timedelta(seconds=seconds),
        )
        return query

    def _bearer(self) -> str:
        with self._lock:
            # One thread fetches a token, the others wait for it.
            if self._token is None or self._token.expires_on - time.time() < _RENEW_BEFORE:
                self._token = self._fetch_token()
            return str(self._token.token)

    def _fetch_token(self) -> Any:
        try:
            from azure.core.exceptions import AzureError
            from azure.identity import DefaultAzureCredential
        except ImportError as error:
            raise MissingExtra.of("azure", "az:// without a key or a SAS") from error
        try:
            # Kept: it remembers which of its many ways has worked.
            self._identity = self._identity or DefaultAzureCredential()
            return self._identity.get_token(SCOPE)
        except AzureError as error:
            raise PermissionDenied(
                f"no usable Azure credentials were found for the account {self._config.account}",
                hint="Run `az login`, set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or "
                "AZURE_STORAGE_SAS_TOKEN, or open a public container with anonymous=true.",
            ) from error


def _decode(key: str | None) -> bytes | None:
    if key is None:
        return None
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error as error:
        raise ConfigInvalid(
            "the Azure account key is not base64", hint="Copy it whole from the portal."
        ) from error


def _text_to_sign(
    account: str,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    length: int,
) -> str:
    """The text that a Shared Key signs: verb, standard headers, x-ms headers, resource."""
    lower = {name.lower(): value for name, value in headers.items()}
    # A length of 0 is signed as nothing, since version 2015-02-21 of the service.
    lower["content-length"] = str(length) if length else ""
    standard = [lower.get(name, "") for name in _SIGNED_HEADERS]
    own = sorted((name for name in lower if name.startswith("x-ms-")), key=service_order)
    listed = [f"{name}:{lower[name]}" for name in own]
    resource = [f"/{account}{path}"]
    resource += [f"{name.lower()}:{query[name]}" for name in sorted(query, key=str.lower)]
    return "\n".join([method, *standard, *listed, *resource])


def service_order(name: str) -> str:
    """The key by which the service orders header names before it signs them.

    It is not the order of their bytes: hyphens do not count and ``_`` comes before digits.
    """
    return name.replace("-", "").replace("_", "\x01")
