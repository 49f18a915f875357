"""The configuration of an S3 service."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from calque.errors import ConfigInvalid
from calque.operator.services.option_values import check_endpoint, flag, number, whole_number
from calque.operator.uri import ServiceUri, refuse_unknown
from calque.values import GIB, MIB

Addressing = Literal["auto", "path", "virtual"]
Conditions = Literal["header", "multipart", "none"]
Kept = Literal["both", "if_not_exists", "none"]
Checksums = Literal["crc32", "md5", "none"]
UploadMark = Literal["part", "size"]

SECRETS = frozenset({"access_key_id", "secret_access_key", "session_token"})


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Config:
    """``s3://bucket/root``. What is not given is found as the AWS tools find it: environment,
    ``~/.aws/config`` and ``~/.aws/credentials``, container or instance role."""

    bucket: str
    root: str = ""
    region: str | None = None
    """AWS_REGION, AWS_DEFAULT_REGION"""
    endpoint_url: str | None = None
    """Another server than Amazon's. AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL"""
    profile: str | None = None
    """A profile of ~/.aws/config. AWS_PROFILE"""
    anonymous: bool = False
    """Sign nothing: public buckets."""
    access_key_id: str | None = field(default=None, repr=False)
    """AWS_ACCESS_KEY_ID"""
    secret_access_key: str | None = field(default=None, repr=False)
    """AWS_SECRET_ACCESS_KEY"""
    session_token: str | None = field(default=None, repr=False)
    """AWS_SESSION_TOKEN"""
    addressing: Addressing = "auto"
    """``path``: host/bucket/key; ``virtual``: bucket.host/key; ``auto``: what the endpoint can."""
    dualstack: bool | None = None
    """IPv6 endpoints of Amazon. AWS_USE_DUALSTACK_ENDPOINT"""
    fips: bool | None = None
    """FIPS endpoints of Amazon. AWS_USE_FIPS_ENDPOINT"""
    ca_bundle: str | None = None
    """A file of certificates to trust. AWS_CA_BUNDLE"""
    requester_pays: bool = False
    """The bucket's requests are paid by who asks, and we agree to that."""
    threshold: int = 128 * MIB
    """Objects up to this size are copied in one request, larger ones in parts; at most 5 GiB."""
    part_size: int = 64 * MIB
    """The size of a copied part where ``chunk`` does not say otherwise."""
    write_part: int = 8 * MIB
    """Writes up to this size are one request; larger ones are sent in parts of it."""
    page_size: int = 1000
    """Keys that one list request asks for; S3 gives 1,000 at most."""
    max_connections: int = 64
    """Connections open at a time; a request beyond that waits for one."""
    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    """Seconds without a byte before a reply counts as lost; the commit of parts may take longer."""
    checksum: Checksums = "crc32"
    """What guards the bytes of a write on their way."""
    md5_etags: bool = True
    """An ETag of 32 hexadecimal digits is the MD5 of the bytes, unless KMS or a customer's key
    encrypts them; reads are held against it. False for a server that makes such ETags otherwise."""
    copy_if_not_exists: Conditions = "header"
    """How the server keeps ``if_not_exists`` of a copy atomic. Amazon and SeaweedFS: ``header``.
    ``multipart``: it only obeys the condition on CompleteMultipartUpload (Ceph). ``none``."""
    read_if_match: bool = True
    """The server obeys ``If-Match`` on reads. Where it does not, ``if_match`` of a read is refused;
    pins of calque's own hold by the ETag that each reply names."""
    write_conditions: Kept = "both"
    """Which conditions the server keeps on a write of one request: ``both``, ``if_not_exists``
    alone, or ``none``. The others are refused instead of hoped for."""
    commit_conditions: Kept = "both"
    """The same of CompleteMultipartUpload: large writes, and copies in parts."""
    delete_if_match: bool = True
    """The server obeys ``If-Match`` on deletes. Otherwise ``if_match`` there is refused."""
    delete_many: bool | None = None
    """The server deletes up to 1,000 keys in one request and obeys the ETag of each. Trees are
    deleted so; Amazon does it unless this is false, others (SeaweedFS) once it is true."""
    source_pins: bool = True
    """The server obeys ``x-amz-copy-source-if-match``. Where it does not (old Ceph, moto) a source
    that changes during a copy is found out, but after the target was made."""
    versions: bool = False
    """The bucket keeps versions: read, copy and delete them by name."""
    key_order: bool = True
    """Listings come in UTF-8 byte order. SeaweedFS and directory buckets: false."""
    unfit_in_keys: str = ""
    """Characters that the server would change in a key; such keys are refused. SeaweedFS makes a
    slash of a backslash."""
    upload_mark: UploadMark = "part"
    """How an unfinished upload is known as ours: by a ``part`` 10,000 that its commit leaves out,
    or, where the server commits only what is named without a gap (``rclone serve s3``), by the
    ``size`` of its parts. A write that meets such a server learns it by itself."""
    sweep_empty: bool = False
    """``leftovers`` also names uploads without any part: a copy killed in its first instant leaves
    one, but so may any other program."""

    def __post_init__(self) -> None:
        if not self.bucket:
            raise ConfigInvalid("s3: the URI names no bucket", hint="For example s3://bucket/root.")
        if self.endpoint_url is not None:
            check_endpoint("s3", self.endpoint_url)
        for name in ("page_size", "max_connections", "threshold"):
            if getattr(self, name) < 1:
                raise ConfigInvalid(f"s3: {name} must be at least 1")
        for name in ("part_size", "write_part"):
            if not 5 * MIB <= getattr(self, name) <= 5 * GIB:
                raise ConfigInvalid(f"s3: {name} must be between 5 MiB and 5 GiB")
        if self.threshold > 5 * GIB:
            raise ConfigInvalid("s3: threshold can be 5 GiB at most: one request copies no more")
        if self.page_size > 1000:
            raise ConfigInvalid("s3: page_size can be 1000 at most")
        if bool(self.access_key_id) != bool(self.secret_access_key):
            raise ConfigInvalid("s3: access_key_id and secret_access_key belong together")
        if self.anonymous and self.access_key_id:
            raise ConfigInvalid("s3: anonymous and access_key_id cannot both hold")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigInvalid(
                    f"s3: {name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}"
                )

    def commits(self, if_not_exists: bool, if_match: str | None) -> bool:
        """Whether the commit of an upload keeps these conditions."""
        wanted = "if_not_exists" if if_not_exists else "both"
        kept = self.commit_conditions in (wanted, "both")
        return kept or not (if_not_exists or if_match)

    @classmethod
    def parse(cls, uri: ServiceUri, options: Mapping[str, object]) -> S3Config:
        """Read the URI and its options, then ``CALQUE_S3_*`` for what they leave open.

        Values of a query and of the environment are strings.
        """
        kinds = {each.name: str(each.type) for each in fields(cls)}
        known = kinds.keys() - {"bucket", "root"}
        refuse_unknown("s3", options, known)
        given = {name: value for name, value in options.items() if value is not None}
        values: dict[str, Any] = {
            name: _read(name, kinds[name], value)
            for name, value in {**_environment(known - SECRETS), **given}.items()
        }
        return cls(bucket=uri.host, root=uri.path.strip("/"), **values)


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "addressing": get_args(Addressing),
    "copy_if_not_exists": get_args(Conditions),
    "checksum": get_args(Checksums),
    "upload_mark": get_args(UploadMark),
    "write_conditions": get_args(Kept),
    "commit_conditions": get_args(Kept),
}


def _environment(names: Iterable[str]) -> dict[str, str]:
    """Options of this machine: how a command line tells a server that is not quite Amazon."""
    found = {name: os.environ.get(f"CALQUE_S3_{name.upper()}") for name in names}
    return {name: value for name, value in found.items() if value}


def _read(name: str, kind: str, value: object) -> object:
    if kind.startswith("bool"):
        return flag(name, value)
    if kind == "int":
        return whole_number(name, value)
    if kind == "float":
        return number(name, value)
    return str(value)
