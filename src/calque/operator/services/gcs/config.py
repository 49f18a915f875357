"""The configuration of the GCS service."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.errors import ConfigInvalid
from calque.operator.services.option_values import check_endpoint, flag, text
from calque.operator.uri import ServiceUri, refuse_unknown

PUBLIC_ENDPOINT = "https://storage.googleapis.com"
SECRETS = frozenset({"token"})
OPTIONS = frozenset(
    {"endpoint", "anonymous", "key_file", "token", "user_project", "versions", "ca_bundle"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsConfig:
    """Where the bucket is and who asks.

    ``endpoint`` (``STORAGE_EMULATOR_HOST``)
        Another server. The variable also means ``anonymous``, as Google's own clients take it.
    ``anonymous``
        Send no credentials: public buckets, emulators.
    ``key_file`` (``GOOGLE_APPLICATION_CREDENTIALS``)
        The JSON file of a service account or of a federation.
    ``token``
        An access token; a secret.
    ``user_project``
        The project that pays where the requester pays.
    ``versions``
        The bucket keeps old generations (object versioning is on).
    ``ca_bundle`` (``SSL_CERT_FILE``)
        A PEM file of the authorities that the endpoint's certificate may come from.

    Without any of them google-auth finds what the machine has: gcloud's login or the metadata
    server's account.
    """

    bucket: str
    root: str = ""
    endpoint: str = PUBLIC_ENDPOINT
    anonymous: bool = False
    key_file: str | None = None
    token: str | None = field(default=None, repr=False)
    user_project: str | None = None
    versions: bool = False
    ca_bundle: str | None = None

    def __post_init__(self) -> None:
        if not self.bucket:
            raise ConfigInvalid("a GCS URI names its bucket", hint="For example gs://bucket/prefix")
        check_endpoint("gs", self.endpoint)

    @classmethod
    def parse(cls, uri: ServiceUri, options: Mapping[str, object]) -> GcsConfig:
        """Read the URI and its options, then the environment for what they leave open."""
        refuse_unknown("gs", options, OPTIONS)
        emulator = os.environ.get("STORAGE_EMULATOR_HOST", "")
        if emulator and "://" not in emulator:
            emulator = f"http://{emulator}"
        own_endpoint = text("endpoint", options.get("endpoint"))
        anonymous = options.get("anonymous", bool(emulator and own_endpoint is None))
        return cls(
            bucket=uri.host,
            root=uri.path.strip("/"),
            endpoint=(own_endpoint or emulator or PUBLIC_ENDPOINT).rstrip("/"),
            anonymous=flag("anonymous", anonymous),
            key_file=text("key_file", options.get("key_file")),
            token=text("token", options.get("token")),
            user_project=text("user_project", options.get("user_project")),
            versions=flag("versions", options.get("versions", False)),
            ca_bundle=text("ca_bundle", options.get("ca_bundle")),
        )
