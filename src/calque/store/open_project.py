"""Open a project: a folder with everything in it, or a satellite far away."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from calque.config import StoreSettings, load_settings
from calque.errors import AlreadyExists, InvalidInput, NotFound
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metainfo import MetainfoClient
from calque.store.metainfo.tls import channel_credentials
from calque.store.project import Project
from calque.store.relay.client import RelayedNodes
from calque.store.uplink.grant import GRANT_MARK, AccessGrant
from calque.store.uplink.session import Session, UplinkSettings

ACCESS, PASSPHRASE = "CALQUE_ACCESS", "CALQUE_PASSPHRASE"
AUTHORITIES = "CALQUE_CA"
_GRPC, _TLS = "grpc://", "grpcs://"


def open_project(
    where: str | os.PathLike[str] = "./data",
    *,
    access: str | AccessGrant | None = None,
    passphrase: str | None = None,
    settings: UplinkSettings | None = None,
    options: StoreOptions | None = None,
    create: bool = True,
    ca: str | os.PathLike[str] | None = None,
) -> Project:
    """Open a project; close it when done, or use it in a ``with`` block.

    ``where`` is a folder, ``grpc://host:port``, ``grpcs://host:port`` (encrypted by TLS), or
    ``@name`` of a store in calque.toml. A folder without a store becomes one, with ``options``,
    unless ``create`` is False. A satellite is reached with an ``access`` grant, which
    CALQUE_ACCESS may hold too; in a folder the default access is used unless another is given.
    ``passphrase`` (or CALQUE_PASSPHRASE) is that of a store made with one. ``ca`` (or CALQUE_CA)
    is a PEM file of the authorities that ``grpcs://`` trusts, instead of the public ones.
    """
    if passphrase == "":
        raise InvalidInput("a passphrase cannot be empty", hint="Leave it out for none.")
    if isinstance(where, str) and where.startswith(GRANT_MARK):
        # Not repeated: it is a secret, and would become the name of a folder.
        raise InvalidInput(
            "an access grant was given where the place of a store belongs",
            hint="Pass it as access=…, and the folder or address as the first argument.",
        )
    if isinstance(where, str) and where.startswith("@"):
        named = _find_named_store(where[1:])
        where, ca = named.location, ca or named.ca
        access = access or (named.access.reveal() if named.access else None)
    grant = AccessGrant.parse(access) if isinstance(access, str) else access
    if isinstance(where, str) and where.startswith((_GRPC, _TLS)):
        return _make_remote_project(where, grant or _grant_of_environment(where), settings, ca)
    store = _open_store(Path(where), passphrase, options, create)
    try:
        return _make_embedded_project(store, grant or _default_grant(store, passphrase), settings)
    except BaseException:
        store.close()
        raise


def address_of_grant(access: str | None) -> str | None:
    """Where the store of a grant is reached, if it tells; without one, that of CALQUE_ACCESS."""
    text = access or os.environ.get(ACCESS)
    return AccessGrant.parse(text).address or None if text else None


def _find_named_store(name: str) -> StoreSettings:
    """A store by its name in calque.toml; what a caller gives wins over the file."""
    stores = load_settings().stores
    if name not in stores:
        known = ", ".join(f"@{each}" for each in stores) or "none"
        raise NotFound(
            f"there is no store named {name!r} in calque.toml (there: {known})",
            hint=f"Add a section [stores.{name}] with its location, or give the folder itself.",
        )
    return stores[name]


def _make_embedded_project(
    store: EmbeddedStore, grant: AccessGrant, settings: UplinkSettings | None
) -> Project:
    session = Session(
        store.endpoint,
        bytes(grant.api_key),
        grant.encryption,
        nodes=store.nodes,
        settings=settings,
    )
    return Project(session, grant, owns=store)


def _default_grant(store: EmbeddedStore, passphrase: str | None) -> AccessGrant:
    """The environment's passphrase is for stores that have one; a given one must be right."""
    if passphrase is None and store.has_passphrase:
        passphrase = os.environ.get(PASSPHRASE) or None
    return store.grant(passphrase)


def _open_store(
    folder: Path, passphrase: str | None, options: StoreOptions | None, create: bool
) -> EmbeddedStore:
    if create and not EmbeddedStore.exists(folder):
        chosen = options or StoreOptions()
        if chosen.passphrase is None:
            chosen = replace(chosen, passphrase=passphrase or os.environ.get(PASSPHRASE) or None)
        try:
            return EmbeddedStore.create(folder, chosen)
        except AlreadyExists:  # another process was quicker
            pass
    return EmbeddedStore.open(folder)


def _make_remote_project(
    where: str,
    grant: AccessGrant,
    settings: UplinkSettings | None,
    ca: str | os.PathLike[str] | None,
) -> Project:
    target = where.partition("://")[2].rstrip("/")
    if not target:
        raise InvalidInput(f"{where!r} names no host", hint="For example grpc://127.0.0.1:7777")
    credentials = None
    if where.startswith(_TLS):
        credentials = channel_credentials(ca or os.environ.get(AUTHORITIES) or None)
    api_key = bytes(grant.api_key)
    session = Session(
        MetainfoClient(target, credentials=credentials),
        api_key,
        grant.encryption,
        nodes=RelayedNodes(target, api_key, credentials),
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
