"""A whole store in one folder: satellite, nodes and the default access.

::

    store.json       where the database and the nodes are, and the redundancy of new segments
    access.json      the default access (mode 0600): it opens everything in the store
    meta.db          the satellite's database (mode 0600), unless another was named
    nodes/<n>/       the pieces of each local node, and a file that says which one it is

The folder may be moved: what lies inside it is named relative to it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from calque.errors import AlreadyExists, InvalidInput, NotFound
from calque.operator import Operator
from calque.operator.services.fs.errors import map_errors
from calque.store.embedded.description import (
    Access,
    Description,
    NodeDescription,
    describe_root,
    lock_folder,
    read_json,
    write_json,
)
from calque.store.embedded.identify_nodes import identify_nodes
from calque.store.metabase.engine.database import missing_database
from calque.store.metabase.model.records import DeletedPieces, now_us
from calque.store.metabase.model.records import Redundancy as StoredRedundancy
from calque.store.metainfo import ApiKey
from calque.store.nodes.delete import PieceDeletion
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.node import NODE_ID_SIZE, Node, NodeDirectory
from calque.store.satellite import Endpoint, SatelliteSettings
from calque.store.uplink.encryption.access import EncryptionAccess
from calque.store.uplink.encryption.keys import KEY_SIZE, SecretKey
from calque.store.uplink.grant import AccessGrant

STORE_FILE, ACCESS_FILE = "store.json", "access.json"
_FREED_AT_OPENING = 500
"""Segments whose pieces an opening deletes at most; ``calque store expire`` takes them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """What is decided when a store is made.

    ``nodes``: folders and Operator URIs where pieces go; by default one folder for each of
    ``redundancy``'s pieces. ``database``: an SQLAlchemy URL; by default SQLite in the folder.
    ``passphrase``: the root key comes from it and is not kept; otherwise it is random and kept in
    ``access.json``.
    """

    redundancy: Redundancy = field(default_factory=Redundancy)
    nodes: Sequence[str] = ()
    database: str | None = None
    passphrase: str | None = None

    def __post_init__(self) -> None:
        if self.nodes and len(self.nodes) < self.redundancy.total:
            raise InvalidInput(
                f"segments of {self.redundancy.total} pieces need as many nodes, "
                f"{len(self.nodes)} are named"
            )


class EmbeddedStore:
    """An opened store: its satellite in this process, and its nodes."""

    def __init__(
        self,
        folder: Path,
        description: Description,
        settings: SatelliteSettings,
        *,
        clock: Callable[[], int] = now_us,
        create: bool = False,
    ) -> None:
        self.folder = folder
        self.description = description
        self.nodes = NodeDirectory(
            Node(each.id, Operator.from_uri(each.address_in(folder)), each.placement)
            for each in description.nodes
        )
        self.endpoint = Endpoint.open(
            description.database_in(folder),
            settings,
            delete_pieces=self._delete_pieces,
            clock=clock,
            create=create,
        )

    @staticmethod
    def exists(folder: str | os.PathLike[str]) -> bool:
        """Whether the folder holds a store."""
        return (Path(folder) / STORE_FILE).exists()

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], *, clock: Callable[[], int] = now_us
    ) -> EmbeddedStore:
        """Open a store that exists; NotFound when the folder holds none.

        FailedPrecondition when its database is missing: nothing is put in its place.
        ``clock`` tells the time in microseconds since 1970.
        """
        place = Path(folder).absolute()
        if not cls.exists(place):
            raise NotFound(
                f"there is no store in {place}", hint=f"Make one with: calque store init {folder}"
            )
        description = read_json(place / STORE_FILE, Description.from_json)
        description.require_known_names()
        store = cls(place, description, _settings(description.redundancy), clock=clock)
        try:
            store.require_own_database()
            store.register_nodes()
            if not description.identified:
                with lock_folder(place):
                    store.identify_nodes()
            # What a killed process left in the queue; bounded, because somebody waits here.
            store.endpoint.free_waiting(_FREED_AT_OPENING)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        options: StoreOptions | None = None,
        *,
        clock: Callable[[], int] = now_us,
    ) -> EmbeddedStore:
        """Make a store; AlreadyExists where there is one. Two makers at once: one wins.

        ``clock`` tells the time in microseconds since 1970.
        """
        place = Path(folder).absolute()
        if place.is_file():
            raise InvalidInput(f"{place} is a file, and a store needs a folder")
        with map_errors(str(place)):
            place.mkdir(parents=True, exist_ok=True)
        with lock_folder(place):
            if cls.exists(place):
                raise AlreadyExists(f"there is a store in {place} already")
            return _make_store(cls, place, options or StoreOptions(), clock)

    def require_own_database(self) -> None:
        """FailedPrecondition when the database knows none of the nodes: it is another store's.

        Registered there, they would look as if no piece on them belonged to anybody, and be swept.
        """
        known = {each.node_id for each in self.endpoint.admin.nodes()}
        ours = {each.id for each in self.description.nodes}
        if self.description.identified and ours and not ours & known:
            raise missing_database(
                "what is there is another store's" if known else "what is there knows no node"
            )

    def register_nodes(self) -> None:
        """Tell the satellite where the nodes are now: the folder may have been moved."""
        for each in self.description.nodes:
            address = each.address_in(self.folder)
            self.endpoint.admin.register_node(each.id, address, each.placement)

    def own_nodes(self) -> list[Node]:
        """The nodes as the folder describes them now: another process may have added some."""
        described = read_json(self.folder / STORE_FILE, Description.from_json).nodes
        own = {
            each.id: self.nodes.get(each.id, each.address_in(self.folder), each.placement)
            for each in described
        }
        return [node for node in own.values() if isinstance(node, Node)]

    def identify_nodes(self) -> None:
        """Finish what the making of the store began: every root gets its identity, once."""
        if identify_nodes(self.nodes.direct(), self.endpoint.database):
            self.description = replace(self.description, identified=True)
            write_json(self.folder / STORE_FILE, self.description.to_json())

    @property
    def has_passphrase(self) -> bool:
        """Whether the store was made with a passphrase."""
        return self.access.root is None

    def grant(self, passphrase: str | None = None) -> AccessGrant:
        """The default access; a store with a passphrase needs it here."""
        access = self.access
        root = access.root_key(passphrase)
        return AccessGrant(
            str(self.folder), ApiKey.parse(access.api_key), EncryptionAccess(root=root)
        )

    def close(self) -> None:
        """Let go of database and nodes."""
        self.endpoint.close()
        self.nodes.close()

    @property
    def access(self) -> Access:
        """The secrets of the default access."""
        return read_json(self.folder / ACCESS_FILE, Access.from_json)

    def _delete_pieces(self, deleted: Sequence[DeletedPieces]) -> list[DeletedPieces]:
        deletion = PieceDeletion(self.nodes)
        left = [
            replace(each, pieces=deletion.delete_pieces(each.root_piece_id, each.pieces))
            for each in deleted
        ]
        return [each for each in left if each.pieces]


def _make_store(
    kind: type[EmbeddedStore], place: Path, options: StoreOptions, clock: Callable[[], int]
) -> EmbeddedStore:
    """Until ``store.json`` is written there is no store; a crash before leaves nothing in the way.

    Nodes are registered after it, and at every opening: an id must not outlive its description.
    Their roots get their identities last, for the same reason.
    """
    addresses = [describe_root(each, place) for each in options.nodes] or [
        f"nodes/{number}" for number in range(options.redundancy.total)
    ]
    description = Description(
        nodes=tuple(
            NodeDescription(secrets.token_bytes(NODE_ID_SIZE), address) for address in addresses
        ),
        redundancy=options.redundancy,
        database=options.database,
    )
    store = kind(place, description, _settings(options.redundancy), clock=clock, create=True)
    try:
        # Before anything is written: a root of another store is left as it is.
        for node in store.nodes.direct():
            node.ask(node.identity.refuse_foreign)
        project = store.endpoint.admin.create_project(f"default-{secrets.token_hex(4)}")
        api_key = store.endpoint.admin.create_api_key(project.id)
        access = Access.make(
            bytes(api_key),
            _root_key(options.passphrase, project.salt),
            project.salt,
            keep_root=options.passphrase is None,
        )
        write_json(place / ACCESS_FILE, access.to_json())
        write_json(place / STORE_FILE, description.to_json())
        store.register_nodes()
        store.identify_nodes()
    except BaseException:
        store.close()
        raise
    return store


def _root_key(passphrase: str | None, salt: bytes) -> SecretKey:
    if passphrase is None:
        return SecretKey(secrets.token_bytes(KEY_SIZE))
    return SecretKey.from_passphrase(passphrase, salt)


def _settings(redundancy: Redundancy) -> SatelliteSettings:
    return SatelliteSettings(
        redundancy=StoredRedundancy(
            redundancy.share_size,
            redundancy.required,
            redundancy.repair,
            redundancy.success,
            redundancy.total,
        )
    )
