"""botocore's share: who we are, where a bucket lives, whom to trust, which way to go.

Credentials come from its chain (environment, profiles, SSO, processes, container and instance
roles), are refreshed by it, and frozen for each request. Endpoints come from its rules, so regions,
partitions, virtual hosts, dual stack, FIPS, access points and configured URLs are as the AWS tools
have them.
"""

from __future__ import annotations

import os
import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import botocore.exceptions
import botocore.httpsession
import botocore.session
import botocore.utils
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config

from calque.errors import CalqueError, ConfigInvalid, PermissionDenied, Unavailable, Unsupported
from calque.operator.services.option_values import check_endpoint, without_userinfo
from calque.operator.services.s3.address import Endpoint
from calque.operator.services.s3.config import S3Config
from calque.operator.services.s3.signing import Keys

_PROBE = "calque-probe"
_PLAIN_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SCOPE = re.compile(r"^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/([^/]+)/([^/]+)/aws4_request,")

BOTOCORE_ERRORS: Mapping[type[Exception], type[CalqueError]] = MappingProxyType(
    {
        botocore.exceptions.NoCredentialsError: PermissionDenied,
        botocore.exceptions.PartialCredentialsError: PermissionDenied,
        botocore.exceptions.CredentialRetrievalError: PermissionDenied,
        botocore.exceptions.TokenRetrievalError: PermissionDenied,
        botocore.exceptions.SSOError: PermissionDenied,
        botocore.exceptions.ClientError: PermissionDenied,
        botocore.exceptions.HTTPClientError: Unavailable,
        botocore.exceptions.ConnectionError: Unavailable,
        botocore.exceptions.ProfileNotFound: ConfigInvalid,
        botocore.exceptions.BotoCoreError: ConfigInvalid,
    }
)
"""The most particular first: BotoCoreError is the root of all but ClientError."""


def error_of(error: Exception, what: str) -> CalqueError:
    """The error that a failure inside botocore becomes."""
    for kind, ours in BOTOCORE_ERRORS.items():
        if isinstance(error, kind):
            return ours(f"{what}: {without_userinfo(str(error))}", hint=_HINTS.get(ours))
    raise error


_HINTS: Mapping[type[CalqueError], str] = {
    PermissionDenied: "Check with: aws sts get-caller-identity. For a public bucket say "
    "anonymous=true.",
    ConfigInvalid: "Look at ~/.aws/config, at the AWS_* variables and at the options given.",
}


class Account:
    """One configuration's session; asks botocore once and remembers."""

    def __init__(self, config: S3Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._credentials: Any = None
        self._endpoint: Endpoint | None = None
        self._by_session = False
        try:
            self._session = botocore.session.Session(profile=config.profile)
            self._session.full_config  # noqa: B018  reads the files, so that a bad one shows now
            if config.profile is not None:
                self._session.get_scoped_config()
        except botocore.exceptions.BotoCoreError as error:
            raise error_of(error, "s3: the configuration cannot be read") from error

    def keys(self) -> Keys | None:
        """The credentials of this moment; None for anonymous. PermissionDenied: none were found."""
        if self._config.anonymous:
            return None
        try:
            frozen = self._source().get_frozen_credentials()
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            raise error_of(error, "s3: no usable credentials") from error
        self._by_session = bool(frozen.token)
        return Keys(frozen.access_key, frozen.secret_key, frozen.token)

    @property
    def has_session(self) -> bool:
        """Whether the keys that were used last belong to a session, which ends."""
        return self._by_session

    def _source(self) -> Any:
        # botocore's search for credentials is not safe between threads.
        with self._lock:
            if self._credentials is None:
                self._credentials = self._find_credentials()
            return self._credentials

    def _find_credentials(self) -> Any:
        config = self._config
        if config.access_key_id is not None:
            self._session.set_credentials(
                config.access_key_id, config.secret_access_key or "", config.session_token
            )
        found = self._session.get_credentials()
        if found is None:
            raise PermissionDenied(
                f"s3: no credentials were found for s3://{config.bucket}",
                hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile, "
                "or say anonymous=true for a public bucket.",
            )
        return found

    def endpoint(self) -> Endpoint:
        """Where the bucket's requests go."""
        with self._lock:
            if self._endpoint is None:
                found = self._plain_endpoint() or self.resolve_endpoint()
                check_endpoint("s3", found.origin)  # it may come from the environment or a file
                self._endpoint = found
            return self._endpoint

    def _plain_endpoint(self) -> Endpoint | None:
        """What botocore's rules make of an endpoint that is named, where that is plain to see.

        To ask them takes a fifth of a second, most of it for reading what Amazon has. A test holds
        this against them.
        """
        config = self._config
        url = config.endpoint_url or _endpoint_of_environment()
        settings = self._session.get_scoped_config().get("s3")
        plain = config.addressing in ("auto", "path") and not config.fips and not config.dualstack
        if not url or settings or not plain or not _PLAIN_BUCKET.fullmatch(config.bucket):
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            return None
        if parts.hostname.endswith((".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu")):
            return None
        region = self._region or self._session.get_config_variable("region") or "us-east-1"
        if region.startswith(("aws-", "fips-")) or region.endswith("-fips"):
            return None
        prefix = f"{parts.path.rstrip('/')}/{config.bucket}"
        return Endpoint(parts.scheme, parts.netloc, prefix, region)

    @property
    def _region(self) -> str | None:
        return self._config.region or os.environ.get("AWS_REGION")

    def resolve_endpoint(self) -> Endpoint:
        """What botocore's rules say."""
        bucket = self._config.bucket
        if bucket.endswith("--x-s3"):
            raise Unsupported(
                f"s3://{bucket} is a directory bucket: calque does not open sessions for them yet"
            )
        try:
            asked = _catch_request(self._prober(), bucket)
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            what = f"s3: no endpoint for s3://{bucket}"
            if isinstance(error, ValueError):
                raise ConfigInvalid(f"{what}: {without_userinfo(str(error))}") from error
            raise error_of(error, what) from error
        return _endpoint_of(asked, bucket)

    def _prober(self) -> Any:
        """A client that only ever resolves: its keys are made up, so that none are fetched."""
        config = self._config
        style: Any = None
        if config.addressing != "auto":
            style = {"addressing_style": config.addressing}
        return self._session.create_client(
            "s3",
            region_name=self._region,
            endpoint_url=config.endpoint_url,
            aws_access_key_id="probe",
            aws_secret_access_key="probe",
            config=Config(
                signature_version="s3v4",
                s3=style,
                use_dualstack_endpoint=config.dualstack,
                use_fips_endpoint=config.fips,
            ),
        )

    def tls(self) -> ssl.SSLContext:
        """The context for https: botocore's bundle, or the one that is configured."""
        bundle = self._config.ca_bundle or self._session.get_config_variable("ca_bundle")
        try:
            context = ssl.create_default_context(
                cafile=bundle or botocore.httpsession.get_cert_path(True)
            )
        except (OSError, ssl.SSLError) as error:
            raise ConfigInvalid(f"s3: the certificates in {bundle} cannot be read") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context

    def proxy(self, endpoint: Endpoint) -> str | None:
        """The HTTP proxy that the environment names for the endpoint."""
        proxies = botocore.utils.get_environ_proxies(endpoint.origin)
        found = proxies.get(endpoint.scheme)
        return str(found) if found else None


def _endpoint_of_environment() -> str | None:
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return None
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def _catch_request(client: Any, bucket: str) -> Any:
    """The request that botocore would send for a key: caught, signed, just before it goes out."""
    caught: list[Any] = []

    def keep(request: Any, **_: Any) -> Any:
        caught.append(request)
        return AWSResponse(request.url, 200, HTTPHeaders(), _Nothing())

    client.meta.events.register("before-send.s3.HeadObject", keep)
    client.head_object(Bucket=bucket, Key=_PROBE)
    return caught[0]


class _Nothing:
    """The body of an empty reply."""

    def stream(self) -> Iterator[bytes]:
        return iter(())


def _endpoint_of(asked: Any, bucket: str) -> Endpoint:
    """Read host and style off a request for the probe key, the scope off its signature."""
    parts = urlsplit(asked.url)
    proof = asked.headers.get("Authorization", b"")
    text = proof.decode() if isinstance(proof, bytes) else str(proof)
    scope = _SCOPE.search(text)
    if scope is None:
        raise Unsupported(f"s3://{bucket} needs another signature than Version 4 for one region")
    prefix = parts.path.removesuffix(f"/{_PROBE}")
    return Endpoint(parts.scheme, parts.netloc, prefix, scope[1], scope[2])
