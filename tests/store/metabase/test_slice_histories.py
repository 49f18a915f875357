"""Random histories of slices against a naive model: extents of what was uploaded once."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.fsck import fsck
from calque.store.metabase.model.records import ObjectLocation, ObjectRecord
from calque.store.metabase.model.schema import metadata
from calque.store.metabase.objects.delete_batch import delete_zombies
from calque.store.metabase.objects.delete_object import AbortObject, abort_object
from tests.store.world import HOUR_US, ONE_REMOTE, THREE_REMOTE, Clock, Layout, World

Place = tuple[str, str]
KEYS = st.sampled_from([("first", "a"), ("first", "b"), ("second", "c"), ("second", "d")])
LAYOUTS = st.sampled_from([ONE_REMOTE, THREE_REMOTE])
SIZE = 100


@dataclass
class Contents:
    """What an object holds: its bytes, and of each the root piece id of its segment."""

    body: bytes = b""
    roots: list[bytes] = field(default_factory=list)

    def cut(self, offset: int, length: int) -> Contents:
        return Contents(self.body[offset : offset + length], self.roots[offset : offset + length])

    def plus(self, more: Contents) -> Contents:
        return Contents(self.body + more.body, self.roots + more.roots)


@dataclass
class Pending:
    """An upload under way, made of ranges."""

    upload: ObjectRecord
    contents: Contents = field(default_factory=Contents)
    parts: int = 0
    joined: tuple[int, ...] = ()


class SliceHistory(RuleBasedStateMachine):
    """Objects as bytes with their roots; the metabase must never differ from them."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.database = Database.open(self.url, clock=self.clock)
        migrate(self.database)
        with self.database.engine.begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(table.delete())
        self.world = World(self.database, self.clock)
        self.model: dict[Place, Contents] = {}
        self.pending: list[Pending] = []

    def teardown(self) -> None:
        for bucket in ("first", "second"):
            self.world.delete_bucket(bucket, 2)
        assert self.world.empty()
        self.database.close()

    @initialize(layout=LAYOUTS)
    def something(self, layout: Layout) -> None:
        """Begin with an object."""
        self.upload(("first", "a"), layout)

    @rule(place=KEYS, layout=LAYOUTS)
    def upload(self, place: Place, layout: Layout) -> None:
        """Upload, over whatever is there."""
        self.world.upload(place[1], layout, bucket=place[0], size=SIZE)
        body = self.world.download(self._at(place))
        by_body = {stored: root for root, stored in self.world.stored.items()}
        roots = [by_body[body[at : at + SIZE]] for at in range(0, len(body), SIZE)]
        self.model[place] = Contents(body, [root for root in roots for _ in range(SIZE)])

    @rule(place=KEYS)
    def begin(self, place: Place) -> None:
        """Begin an upload of ranges."""
        if len(self.pending) < 3:
            self.pending.append(Pending(self.world.begin(self._at(place))))

    @rule(number=st.integers(0, 2), source=KEYS, first=st.floats(0, 1), share=st.floats(0, 1))
    def copy_part(self, number: int, source: Place, first: float, share: float) -> None:
        """A range of an object is the next part."""
        known = self.model.get(source)
        if number >= len(self.pending) or known is None or not known.body:
            return
        offset = min(int(first * len(known.body)), len(known.body) - 1)
        length = max(1, int(share * (len(known.body) - offset)))
        self._copy(self.pending[number], source, offset, length)

    @rule(number=st.integers(0, 2), source=KEYS, step=st.sampled_from([30, 100, 170, 300]))
    def copy_all(self, number: int, source: Place, step: int) -> None:
        """All of an object in ranges: the rest of what an upload may be joined to."""
        known = self.model.get(source)
        if number >= len(self.pending) or known is None:
            return
        pending = self.pending[number]
        pending.joined = tuple(
            key.position for key in self.world.rewrapped(self._at(source), self._at(("first", "x")))
        )
        for offset in range(0, len(known.body), step):
            self._copy(pending, source, offset, min(step, len(known.body) - offset))

    def _copy(self, pending: Pending, source: Place, offset: int, length: int) -> None:
        pending.parts += 1
        self.world.copy_part(pending.upload, pending.parts, self._at(source), offset, length)
        pending.contents = pending.contents.plus(self.model[source].cut(offset, length))

    @rule(number=st.integers(0, 2))
    def commit(self, number: int) -> None:
        """The ranges become an object, or a copy where they are all of one."""
        if number < len(self.pending):
            pending = self.pending.pop(number)
            self.world.commit(pending.upload, pending.joined, pending.parts)
            upload = pending.upload
            self.model[upload.bucket_name, upload.object_key.decode()] = pending.contents

    @rule(number=st.integers(0, 2))
    def abort(self, number: int) -> None:
        """Give an upload up."""
        if number < len(self.pending):
            upload = self.pending.pop(number).upload
            request = AbortObject(upload.location, upload.stream_id)
            self.world.free(abort_object(self.database, request).freed)

    @rule()
    def days_pass(self) -> None:
        """Uploads that nobody goes on with are swept."""
        self.clock.advance(72 * HOUR_US)
        for result in delete_zombies(self.database, idle_us=24 * HOUR_US, batch=2):
            self.world.free(result.freed)
        self.pending = []

    @rule(source=KEYS, onto=KEYS, move=st.booleans())
    def copy(self, source: Place, onto: Place, move: bool) -> None:
        """Copy or move, over whatever is there."""
        if source not in self.model or source == onto:
            return
        verb = self.world.move if move else self.world.copy
        verb(self._at(source), self._at(onto))
        self.model[onto] = self.model[source]
        if move:
            del self.model[source]

    @rule(place=KEYS)
    def delete(self, place: Place) -> None:
        """Delete, whether it is there or not."""
        assert (self.world.delete(self._at(place)) is not None) == (place in self.model)
        self.model.pop(place, None)

    @rule(bucket=st.sampled_from(["first", "second"]), batch=st.sampled_from([1, 3]))
    def drop_bucket(self, bucket: str, batch: int) -> None:
        """Delete a bucket with everything in it, and make it anew."""
        self.world.delete_bucket(bucket, batch)
        self.world.bucket(bucket)
        self.model = {place: each for place, each in self.model.items() if place[0] != bucket}
        self.pending = [each for each in self.pending if each.upload.bucket_name != bucket]

    @invariant()
    def nothing_is_lost_or_left(self) -> None:
        """fsck is silent, every byte is there, and no piece that nobody refers to."""
        assert fsck(self.database) == []
        for place, known in self.model.items():
            assert self.world.download(self._at(place)) == known.body
        held = [*self.model.values(), *(each.contents for each in self.pending)]
        assert set(self.world.stored) == {root for each in held for root in each.roots}

    def _at(self, place: Place) -> ObjectLocation:
        return self.world.at(place[1], place[0])


def _run(url: str, examples: int, steps: int) -> None:
    machine = type("SliceHistory", (SliceHistory,), {"url": url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_slices_on_sqlite() -> None:
    """Upload, copy ranges, join, copy, move, delete and sweep, in any order."""
    with tempfile.TemporaryDirectory() as directory:
        _run(f"sqlite:///{directory}/meta.db", examples=20, steps=30)


def test_slices_on_postgres(postgres_url: str) -> None:
    """The same on PostgreSQL, fewer."""
    _run(postgres_url, examples=5, steps=30)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_long_histories_of_slices(postgres_url: str) -> None:
    """Many more, on both databases."""
    _run(postgres_url, examples=150, steps=60)
    with tempfile.TemporaryDirectory() as directory:
        _run(f"sqlite:///{directory}/meta.db", examples=400, steps=60)
