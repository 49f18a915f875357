"""A store under test: small segments, so that every size class is cheap."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.embedded.description import DATABASE
from calque.store.nodes.erasure import Redundancy
from calque.store.project import Project
from calque.store.upkeep.fsck import check_store
from calque.store.uplink.encryption.blocks import EncryptionParameters
from calque.store.uplink.encryption.cipher import CipherSuite
from calque.store.uplink.grant import AccessGrant
from calque.store.uplink.session import Session, UplinkSettings
from tests.store.world import lay_metabase

INLINE, SEGMENT = 64, 1000
BUCKET, OTHER = "photos", "archive"

SMALL = UplinkSettings(
    segment_size=SEGMENT,
    inline_size=INLINE,
    encryption=EncryptionParameters(CipherSuite.AES_256_GCM, 16 + 100),
    list_page=3,
    segment_page=2,
    download_patience=0.05,
)

SIZES = {
    "empty": 0,
    "inline": INLINE,
    "one remote": INLINE + 1,
    "full segment": SEGMENT,
    "remote and inline tail": SEGMENT + 7,
    "three remote": 3 * SEGMENT,
    "five and a bit": 5 * SEGMENT + 321,
}


@dataclass
class Clock:
    """The satellite's clock, which tests may put forward."""

    ahead: timedelta = timedelta(0)

    def __call__(self) -> int:
        return int(self.now().timestamp() * 1_000_000)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class World:
    """An opened store and a project in it with two buckets."""

    store: EmbeddedStore
    project: Project
    clock: Clock

    @classmethod
    def make(
        cls, folder: Path, redundancy: Redundancy, database: str | None = None, *, nodes: int = 0
    ) -> World:
        """``nodes``: how many, where they are more than a segment has pieces."""
        roots = [str(folder / "nodes" / str(number)) for number in range(nodes)]
        options = StoreOptions(redundancy=redundancy, database=database, nodes=roots)
        clock = Clock()
        if database is None:
            lay_metabase(folder / DATABASE)
        store = EmbeddedStore.create(folder, options, clock=clock)
        world = cls(store, cls._open(store, store.grant(), SMALL), clock)
        for bucket in (BUCKET, OTHER):
            world.project.create_bucket(bucket)
        return world

    @staticmethod
    def _open(store: EmbeddedStore, grant: AccessGrant, settings: UplinkSettings) -> Project:
        session = Session(
            store.endpoint,
            bytes(grant.api_key),
            grant.encryption,
            nodes=store.nodes,
            settings=settings,
        )
        return Project(session, grant)

    def through(self, grant: AccessGrant, settings: UplinkSettings = SMALL) -> Project:
        """The same store through another access or other settings."""
        return self._open(self.store, grant, settings)

    def piece_count(self) -> int:
        """How many pieces lie on all nodes."""
        return sum(1 for node in self.store.nodes.direct() for _ in node.pieces())

    def keys(self, bucket: str = BUCKET) -> list[str]:
        return [entry.key for entry in self.project.list_objects(bucket)]

    def check(self) -> None:
        """Nothing is wrong in any row and with any piece."""
        assert check_store(self.store, young=True) == []

    def close(self) -> None:
        self.store.close()
