"""Who asks: google-auth's credentials, found when the first request needs them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google.auth
import google.auth.transport.requests
import google.oauth2.credentials as user
from google.auth import identity_pool
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.oauth2 import service_account

from calque.errors import CalqueError, PermissionDenied, Unavailable, Unsupported
from calque.operator.services.gcs.config import GcsConfig

SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_HINT = (
    "Run `gcloud auth application-default login`, set GOOGLE_APPLICATION_CREDENTIALS or the option "
    "key_file, or open a public bucket with anonymous=true."
)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The private key of a service account: whose it is, and how it signs."""

    email: str
    sign: Callable[[bytes], bytes]


class Credentials:
    """Puts the Authorization header on requests and renews its token; safe for threads."""

    def __init__(self, config: GcsConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._found: Any = None

    def sign(self, headers: dict[str, str]) -> None:
        """Add what proves who asks; PermissionDenied where nothing is found or it is refused."""
        if self._config.anonymous:
            return
        if self._config.token is not None:
            headers["Authorization"] = f"Bearer {self._config.token}"
            return
        # Read without the lock, which would line up all requests: it is set once and never unset.
        found = self._found
        if found is None or not found.valid:
            found = self._load(renew=True)
        found.apply(headers)

    def signing_key(self) -> SigningKey:
        """The key that signs requests for others; Unsupported where there is none."""
        found = None if self._config.token is not None else self._load(renew=False)
        if not isinstance(found, service_account.Credentials):
            raise Unsupported(
                "GCS signs requests for others by the key of a service account alone, and these "
                "credentials hold none",
                hint="Open the bucket with key_file=… (or GOOGLE_APPLICATION_CREDENTIALS), the "
                "JSON file of a service account.",
            )
        return SigningKey(found.signer_email, found.sign_bytes)

    def _load(self, *, renew: bool) -> Any:
        """What was found, with a token that is good where one is asked for.

        One thread at a time: the others would each fetch a token of their own.
        """
        with self._lock:
            try:
                if self._found is None:
                    self._found = self._find()
                # Asked again under the lock: another thread may have renewed it meanwhile.
                if renew and not self._found.valid:
                    self._found.refresh(google.auth.transport.requests.Request())
            except (GoogleAuthError, OSError, ValueError) as error:
                raise _error_of(error) from error
            return self._found

    def _find(self) -> Any:
        if self._config.key_file is not None:
            return _load_file(self._config.key_file)
        found, _ = google.auth.default(scopes=[SCOPE])
        return found


def _load_file(path: str) -> Any:
    """The credentials in a JSON file that the caller has named."""
    info = json.loads(Path(path).read_text())
    loaders: dict[str, Callable[..., Any]] = {
        "service_account": service_account.Credentials.from_service_account_info,
        "authorized_user": user.Credentials.from_authorized_user_info,
        "external_account": identity_pool.Credentials.from_info,
    }
    kind = info.get("type") if isinstance(info, dict) else None
    if kind not in loaders:
        raise ValueError(f"the file holds credentials of type {kind!r}")
    return loaders[kind](info, scopes=[SCOPE])


def _error_of(error: Exception) -> CalqueError:
    if isinstance(error, DefaultCredentialsError):
        return PermissionDenied("no usable Google Cloud credentials were found", hint=_HINT)
    if isinstance(error, TransportError):
        return Unavailable("the server that issues Google Cloud tokens cannot be reached")
    if isinstance(error, GoogleAuthError):
        renewable = bool(getattr(error, "retryable", False))
        return PermissionDenied(
            "Google Cloud refused to renew the access token", hint=_HINT, retryable=renewable
        )
    return PermissionDenied("the credentials file cannot be used", hint=_HINT)
