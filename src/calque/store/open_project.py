"""Open a project: a folder with everything in it, or a satellite far away."""

from __future__ import annotations

import os
from pathlib import Path

from calque.errors import AlreadyExists, InvalidInput
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metainfo import MetainfoClient
from calque.store.nodes.remote import RelayedNodes
from calque.store.project import Project
from calque.store.uplink.grant import AccessGrant
from calque.store.uplink.session import Session, UplinkSettings

ACCESS, PASSPHRASE = "CALQUE_ACCESS", "CALQUE_PASSPHRASE"
_GRPC = "grpc://"


def open_project(
    where: str | os.PathLike[str] = "./data",
    *,
    access: str | AccessGrant | None = None,
    passphrase: str | None = None,
    settings: UplinkSettings | None = None,
    options: StoreOptions | None = None,
) -> Project:
    """Open a project; close it when done, or use it in a ``with`` block.

    ``where`` is a folder or ``grpc://host:port``. A folder without a store becomes one, with
    ``options``. A satellite is reached with an ``access`` grant, which CALQUE_ACCESS may hold too;
    in a folder the default access is used unless another is given. ``passphrase`` (or
    CALQUE_PASSPHRASE) is that of a store made with one.
    """
    grant = AccessGrant.parse(access) if isinstance(access, str) else access
    if isinstance(where, str) and where.startswith(_GRPC):
        return _remote(where, grant or _grant_of_environment(where), settings)
    return _embedded(Path(where), grant, passphrase, settings, options)


def _embedded(
    folder: Path,
    grant: AccessGrant | None,
    passphrase: str | None,
    settings: UplinkSettings | None,
    options: StoreOptions | None,
) -> Project:
    passphrase = passphrase or os.environ.get(PASSPHRASE) or None
    store = _opened(folder, passphrase, options)
    try:
        grant = grant or store.grant(passphrase)
        session = Session(
            store.endpoint,
            bytes(grant.api_key),
            grant.encryption,
            nodes=store.nodes,
            settings=settings,
        )
    except BaseException:
        store.close()
        raise
    return Project(session, grant, owns=store)


def _opened(folder: Path, passphrase: str | None, options: StoreOptions | None) -> EmbeddedStore:
    if not EmbeddedStore.exists(folder):
        chosen = options or StoreOptions(passphrase=passphrase)
        try:
            return EmbeddedStore.create(folder, chosen)
        except AlreadyExists:  # another process was quicker
            pass
    return EmbeddedStore.open(folder)


def _remote(where: str, grant: AccessGrant, settings: UplinkSettings | None) -> Project:
    target = where.removeprefix(_GRPC).rstrip("/")
    if not target:
        raise InvalidInput(f"{where!r} names no host", hint="For example grpc://127.0.0.1:7777")
    api_key = bytes(grant.api_key)
    session = Session(
        MetainfoClient(target),
        api_key,
        grant.encryption,
        nodes=RelayedNodes(target, api_key),
        settings=settings,
    )
    return Project(session, grant)


def _grant_of_environment(where: str) -> AccessGrant:
    text = os.environ.get(ACCESS)
    if not text:
        raise InvalidInput(
            f"{where} needs an access grant",
            hint=f"Give access=…, or set {ACCESS}; `calque serve` shows one when it makes a store.",
        )
    return AccessGrant.parse(text)
