"""Random histories of the real client against a naive model, on both databases."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from calque.errors import AlreadyExists, ConditionNotMatch, InvalidInput, ResourceExhausted
from calque.store.nodes.erasure import Redundancy
from calque.store.upkeep.expire import sweep_store
from tests.servers.postgres import PostgresServer
from tests.store.world import make_metabase
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SIZES, World

KEYS = ["a", "b", "dir/a", "dir/b"]
places = st.tuples(st.sampled_from([BUCKET, OTHER]), st.sampled_from(KEYS))
metadata = st.dictionaries(st.sampled_from(["x", "y"]), st.text(max_size=5), max_size=2)
sizes = st.sampled_from([*SIZES.values(), 1, SEGMENT - 1])


@dataclass(frozen=True)
class Kept:
    """What the model knows of an object."""

    content: bytes
    metadata: dict[str, str]
    expires: datetime | None = None


class History(RuleBasedStateMachine):
    """The model is a dictionary of values: what is copied there shares nothing."""

    redundancy: ClassVar[Redundancy] = Redundancy(share_size=100)
    server: ClassVar[PostgresServer | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="calque-history-"))
        self.url = self.server.prepared(make_metabase) if self.server else None
        self.world = World.make(self.folder / "store", self.redundancy, self.url)
        self.model: dict[tuple[str, str], Kept] = {}

    def teardown(self) -> None:
        try:
            self.everything_downloads()
            for place in list(self.model):
                self.world.project.delete_object(*place)
            sweep_store(self.world.store)
            assert self.world.piece_count() == 0
            self.world.check()
        finally:
            self.world.close()
            if self.server and self.url:
                self.server.drop(self.url)
            shutil.rmtree(self.folder)

    def existing(self, data: st.DataObject) -> tuple[str, str]:
        return data.draw(st.sampled_from(sorted(self.model)))

    @rule(
        place=places,
        size=sizes,
        kept=metadata,
        fresh=st.booleans(),
        hours=st.one_of(st.none(), st.integers(1, 5)),
    )
    def upload(
        self, place: Any, size: int, kept: dict[str, str], fresh: bool, hours: int | None
    ) -> None:
        content = os.urandom(size)
        expires = None if hours is None else self.world.clock.now() + timedelta(hours=hours)
        if fresh and place in self.model:
            with pytest.raises((ConditionNotMatch, AlreadyExists)):
                self.world.project.upload(*place, content, metadata=kept, if_not_exists=True)
            return
        self.world.project.upload(
            *place, content, metadata=kept, if_not_exists=fresh, expires=expires
        )
        self.model[place] = Kept(content, kept, expires)

    @rule(place=places, parts=st.dictionaries(st.integers(1, 9), sizes, min_size=1, max_size=3))
    def upload_in_parts(self, place: Any, parts: dict[int, int]) -> None:
        upload = self.world.project.begin_multipart(*place)
        contents = {number: os.urandom(size) for number, size in parts.items()}
        for number in reversed(contents):
            upload.upload_part(number, contents[number])
        upload.commit()
        self.model[place] = Kept(b"".join(contents[n] for n in sorted(contents)), {})

    @precondition(lambda self: self.model)
    @rule(data=st.data(), to=places, replaced=st.one_of(st.none(), metadata))
    def copy(self, data: st.DataObject, to: Any, replaced: dict[str, str] | None) -> None:
        source = self.existing(data)
        try:
            self.world.project.copy_object(*source, *to, metadata=replaced)
        except ResourceExhausted:
            return
        copied = self.model[source]
        self.model[to] = copied if replaced is None else replace(copied, metadata=replaced)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), to=places)
    def move(self, data: st.DataObject, to: Any) -> None:
        source = self.existing(data)
        if source == to:
            with pytest.raises(InvalidInput, match="onto itself"):
                self.world.project.move_object(*source, *to)
            return
        self.world.project.move_object(*source, *to)
        self.model[to] = self.model.pop(source)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        place = self.existing(data)
        assert self.world.project.delete_object(*place)
        del self.model[place]

    @rule(hours=st.integers(1, 3), swept=st.booleans())
    def time_passes(self, hours: int, swept: bool) -> None:
        self.world.clock.ahead += timedelta(hours=hours)
        now = self.world.clock.now()
        for place, kept in list(self.model.items()):
            if kept.expires is not None and kept.expires <= now:
                del self.model[place]
        if swept:
            sweep_store(self.world.store)

    @rule(bucket=st.sampled_from([BUCKET, OTHER]))
    def delete_bucket(self, bucket: str) -> None:
        gone = [place for place in self.model if place[0] == bucket]
        deleted = self.world.project.delete_bucket(bucket, with_objects=True)
        assert deleted >= len(gone)  # expired ones that were not swept yet go too
        self.world.project.create_bucket(bucket)
        for place in gone:
            del self.model[place]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), offset=st.integers(0, 6000), length=st.integers(0, 6000))
    def read_a_range(self, data: st.DataObject, offset: int, length: int) -> None:
        place = self.existing(data)
        got = self.world.project.download(*place, offset=offset, length=length).read()
        assert got == self.model[place].content[offset : offset + length]

    @invariant()
    def listings_agree(self) -> None:
        for bucket in (BUCKET, OTHER):
            assert self.world.keys(bucket) == sorted(k for b, k in self.model if b == bucket)

    @invariant()
    def rows_and_pieces_agree(self) -> None:
        self.world.check()

    def everything_downloads(self) -> None:
        for place, kept in self.model.items():
            download = self.world.project.download(*place)
            assert download.read() == kept.content
            assert dict(download.info.metadata) == kept.metadata
            assert download.info.expires == kept.expires


def run(machine: type[History], examples: int, *, shrink: bool = False) -> None:
    """Shrinking a failure takes minutes on real disks: the short tests show it as it came."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            phases=list(Phase) if shrink else [Phase.generate],
        ),
    )


def test_histories_on_sqlite() -> None:
    """Whatever is done in whatever order, the store is the model, on one node."""
    run(type("OnSqlite", (History,), {}), 12)


def test_histories_on_several_nodes() -> None:
    """The same with two of four pieces."""
    run(type("Spread", (History,), {"redundancy": Redundancy.of(2, 4, share_size=50)}), 5)


def test_histories_on_postgresql(postgres: PostgresServer) -> None:
    """The same on PostgreSQL."""
    run(type("OnPostgres", (History,), {"server": postgres}), 6)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_long_histories(postgres: PostgresServer) -> None:
    """Many more of them, on both databases."""
    run(type("LongSqlite", (History,), {}), 300, shrink=True)
    run(type("LongPostgres", (History,), {"server": postgres}), 150, shrink=True)
