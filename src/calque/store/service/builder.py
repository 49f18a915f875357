"""The store as a service of the Operator: ``calque://bucket/prefix``.

The project is the option ``project`` (a folder, ``grpc://host:port`` or ``grpcs://host:port``), or
CALQUE_PROJECT, or what the access grant tells; the access, the passphrase and the file of
authorities ``ca`` come as options or from CALQUE_ACCESS, CALQUE_PASSPHRASE and CALQUE_CA. A
location names its project beside the bucket, ``calque://bucket;project=%2Fdata/key``, and opens it
wherever that is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from calque.errors import InvalidInput
from calque.operator.layers.chain import Chain
from calque.operator.service import Bucket
from calque.operator.uri import ServiceUri, refuse_unknown
from calque.store.open_project import ACCESS, address_of_grant, open_project
from calque.store.project import Project
from calque.store.service.service import PROJECT_OF, StoreService

SECRETS: frozenset[str] = frozenset({"access", "passphrase"})
PROJECT = "CALQUE_PROJECT"


def build(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> StoreService:
    """The service of ``calque://bucket/prefix``."""
    refuse_unknown("calque", options, ("project", "ca", *SECRETS))
    if not uri.host:
        raise InvalidInput(
            "a calque URI names a bucket",
            hint="For example calque://photos/2026; `calque store buckets` lists them.",
        )
    bucket, _, named = uri.host.partition(PROJECT_OF)
    where = _where(named, options)
    return StoreService(_open(where, options), where, bucket, uri.path.strip("/"), chain)


def list_buckets(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> Iterator[Bucket]:
    """The buckets of the project that the access may see, by name."""
    refuse_unknown("calque", options, ("project", "ca", *SECRETS))
    with _open(_where("", options), options) as project:
        for bucket in project.list_buckets():
            yield Bucket(bucket.name, bucket.created)


def _where(named: str, options: Mapping[str, object]) -> str:
    where = unquote(named) or _text(options, "project") or os.environ.get(PROJECT)
    where = where or address_of_grant(_text(options, "access"))
    if not where:
        raise InvalidInput(
            "calque:// needs to know the project",
            hint=f"Set {PROJECT} to its folder or grpc://host:port, or give the option project.",
        )
    return where


def _open(where: str, options: Mapping[str, object]) -> Project:
    return open_project(
        where,
        access=_text(options, "access") or os.environ.get(ACCESS) or None,
        passphrase=_text(options, "passphrase"),
        create=False,
        ca=_text(options, "ca"),
    )


def _text(options: Mapping[str, object], name: str) -> str | None:
    value = options.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"the option {name} is text, not {type(value).__name__}")
    return value
