"""A store to look after: what is in it, and what can happen to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.embedded.description import DATABASE
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import piece_id
from calque.store.project import Project
from calque.store.upkeep.fsck import check_store
from calque.store.uplink.session import Session
from tests.store.world import lay_metabase
from tests.store_client.world import BUCKET, SMALL, Clock

__all__ = ["BUCKET", "KeptStore"]


@dataclass
class KeptStore:
    """An opened store, a project in it, and the bytes that every object must have."""

    store: EmbeddedStore
    project: Project
    clock: Clock
    contents: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def make(
        cls, folder: Path, redundancy: Redundancy, nodes: int, database: str | None
    ) -> KeptStore:
        roots = [str(folder / "disks" / str(number)) for number in range(nodes)]
        clock = Clock()
        options = StoreOptions(redundancy=redundancy, nodes=roots, database=database)
        if database is None:
            lay_metabase(folder / DATABASE)
        store = EmbeddedStore.create(folder, options, clock=clock)
        grant = store.grant()
        session = Session(
            store.endpoint, bytes(grant.api_key), grant.encryption, nodes=store.nodes,
            settings=SMALL,
        )  # fmt: skip
        kept = cls(store, Project(session, grant), clock)
        kept.project.create_bucket(BUCKET)
        return kept

    def upload(self, key: str, size: int = 2500) -> None:
        self.contents[key] = os.urandom(size)
        self.project.upload(BUCKET, key, self.contents[key])

    def copy(self, key: str, target: str) -> None:
        self.project.copy_object(BUCKET, key, BUCKET, target)
        self.contents[target] = self.contents[key]

    def delete(self, key: str) -> None:
        self.project.delete_object(BUCKET, key)
        del self.contents[key]

    def pass_days(self, days: float) -> None:
        """Time goes by for the store; files are as old as they are."""
        self.clock.ahead += timedelta(days=days)

    def lay_garbage(self, count: int = 1) -> int:
        """Pieces as a killed upload leaves them; how many."""
        nodes = self.store.nodes.direct()
        for node in nodes:
            for _ in range(count):
                node.write(piece_id(os.urandom(32), node.id, 0), [b"left behind"], None)
        return count * len(nodes)

    def pieces(self) -> dict[bytes, set[bytes]]:
        """Every piece on every node that answers."""
        return {node.id: set(self._pieces_of(node)) for node in self.store.nodes.direct()}

    def piece_count(self) -> int:
        return sum(map(len, self.pieces().values()))

    def lose_node(self, number: int) -> Node:
        """The disk of a node is gone for good."""
        shutil.rmtree(self.disk(number))
        return self.node(number)

    def disk(self, number: int) -> Path:
        return self.store.folder / self.store.description.nodes[number].address

    def node(self, number: int) -> Node:
        wanted = self.store.description.nodes[number].id
        return next(node for node in self.store.nodes.direct() if node.id == wanted)

    def read_all(self) -> None:
        """Every object has its bytes."""
        for key, content in self.contents.items():
            assert self.project.download(BUCKET, key).read() == content, key

    def check(self) -> None:
        """Every object has its bytes, and nothing is wrong with any row or piece."""
        self.read_all()
        assert check_store(self.store, young=True) == []

    def close(self) -> None:
        self.store.close()

    @staticmethod
    def _pieces_of(node: Node) -> Iterator[bytes]:
        try:
            yield from (each.piece for each in node.pieces())
        except Exception:
            return
