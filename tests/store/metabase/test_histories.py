"""Random histories against a naive model: every byte and every row, on both databases."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from calque.errors import FailedPrecondition, NotFound
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.fsck import fsck
from calque.store.metabase.model.records import ObjectLocation
from calque.store.metabase.model.schema import metadata
from calque.store.metabase.objects.delete_batch import delete_expired
from calque.store.metabase.objects.list_objects import ListObjects, list_objects
from tests.store.world import (
    EMPTY,
    HOUR_US,
    ONE_INLINE,
    ONE_REMOTE,
    THREE_REMOTE,
    WITH_TAIL,
    Clock,
    Layout,
    World,
)

KEYS = st.sampled_from([("first", "a"), ("first", "b"), ("first", "c"), ("second", "a")])
LAYOUTS = st.sampled_from([EMPTY, ONE_INLINE, ONE_REMOTE, WITH_TAIL, THREE_REMOTE])
Place = tuple[str, str]


@dataclass
class Expected:
    """What the model knows of an object."""

    body: bytes
    roots: frozenset[bytes]
    remote: int
    segments: int
    size: int
    expires_at: int | None
    metadata: bytes | None


class History(RuleBasedStateMachine):
    """Objects as a dictionary; the metabase must never differ from it."""

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
        self.model: dict[Place, Expected] = {}

    def teardown(self) -> None:
        for bucket in ("first", "second"):
            self.world.delete_bucket(bucket, 2)
        assert self.world.empty()
        self.database.close()

    @initialize(place=KEYS, layout=LAYOUTS)
    def something(self, place: Place, layout: Layout) -> None:
        """Begin with one object."""
        self.upload(place, layout, False)

    @rule(place=KEYS, layout=LAYOUTS, expiring=st.booleans())
    def upload(self, place: Place, layout: Layout, expiring: bool) -> None:
        """Upload, over whatever is there."""
        expires_at = self.clock() + HOUR_US if expiring else None
        before = set(self.world.stored)
        data = os.urandom(8)
        record = self.world.upload(
            place[1],
            layout,
            bucket=place[0],
            expires_at=expires_at,
            metadata=self.world.wrapped_metadata(data),
        )
        roots = frozenset(set(self.world.stored) - before)
        self.model[place] = Expected(
            self.world.download(self._at(place)),
            roots,
            len(roots),
            record.segment_count,
            record.total_encrypted_size,
            expires_at,
            data,
        )

    @rule(source=KEYS, onto=KEYS, replace=st.booleans())
    def copy(self, source: Place, onto: Place, replace: bool) -> None:
        """Copy, also onto itself, its ancestor or its copy."""
        if self._missing(source):
            with pytest.raises(NotFound):
                self.world.copy(self._at(source), self._at(onto))
            return
        changes = {}
        data = self.model[source].metadata
        if replace:
            data = os.urandom(8)
            changes = {"metadata": self.world.wrapped_metadata(data), "override_metadata": True}
        self.world.copy(self._at(source), self._at(onto), **changes)
        known = self.model[source]
        self.model[onto] = Expected(**{**vars(known), "metadata": data})

    @rule(source=KEYS, onto=KEYS)
    def move(self, source: Place, onto: Place) -> None:
        """Move, over whatever is there."""
        if source == onto:
            return
        if self._missing(source):
            with pytest.raises(NotFound):
                self.world.move(self._at(source), self._at(onto))
            return
        self.world.move(self._at(source), self._at(onto))
        self.model[onto] = self.model.pop(source)

    @rule(place=KEYS)
    def delete(self, place: Place) -> None:
        """Delete, whether it is there or not."""
        there = not self._missing(place)
        assert (self.world.delete(self._at(place)) is not None) == there
        if there:
            del self.model[place]

    @rule(source=KEYS, onto=KEYS)
    @precondition(lambda self: self.model)
    def stale_finish(self, source: Place, onto: Place) -> None:
        """A Finish whose source was deleted meanwhile changes nothing."""
        if self._missing(source) or source == onto:
            return
        request = self.world.finishing(self._at(source), self._at(onto))
        self.delete(source)
        with self.world.unchanged(FailedPrecondition):
            self.world.finish(request)

    @rule()
    def time_passes(self) -> None:
        """Everything with an expiry is over."""
        self.clock.advance(2 * HOUR_US)

    @rule(batch=st.sampled_from([1, 2, 100]))
    def sweep(self, batch: int) -> None:
        """Delete what has expired."""
        for result in delete_expired(self.database, batch=batch):
            self.world.free(result.freed)
        self.model = {place: each for place, each in self.model.items() if not self._over(each)}

    @rule(bucket=st.sampled_from(["first", "second"]), batch=st.sampled_from([1, 2]))
    def drop_bucket(self, bucket: str, batch: int) -> None:
        """Delete a bucket with everything in it, and make it anew."""
        self.world.delete_bucket(bucket, batch)
        self.world.bucket(bucket)
        self.model = {place: each for place, each in self.model.items() if place[0] != bucket}

    @invariant()
    def metabase_is_whole(self) -> None:
        """fsck is silent, and the rows add up to the model."""
        assert fsck(self.database) == []
        usage = self.world.usage()
        expected = self.model.values()
        assert usage == (
            sum(each.size for each in expected),
            sum(each.segments for each in expected),
            len(self.model),
        )
        assert set(self.world.stored) == {root for each in expected for root in each.roots}
        holders = [each for each in expected if each.remote]
        originals = {each.roots for each in holders}
        assert len(self.world.ancestors()) == len(holders) - len(originals)

    @invariant()
    def objects_are_as_modelled(self) -> None:
        """Listings, metadata and every byte agree."""
        for bucket in ("first", "second"):
            page = list_objects(self.database, ListObjects(self.world.project_id, bucket))
            visible = {item.key: item.object for item in page.items}
            places = [place for place in self.model if not self._missing(place)]
            assert set(visible) == {key.encode() for name, key in places if name == bucket}
            for name, key in places:
                if name != bucket:
                    continue
                record = visible[key.encode()]
                assert record is not None
                assert record.encrypted_metadata == self.model[name, key].metadata
                assert self.world.download(self._at((name, key))) == self.model[name, key].body

    def _at(self, place: Place) -> ObjectLocation:
        return self.world.at(place[1], place[0])

    def _over(self, known: Expected) -> bool:
        return known.expires_at is not None and known.expires_at <= self.clock()

    def _missing(self, place: Place) -> bool:
        known = self.model.get(place)
        return known is None or self._over(known)


def _run(url: str, examples: int, steps: int) -> None:
    machine = type("History", (History,), {"url": url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@contextmanager
def _sqlite_url() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        yield f"sqlite:///{directory}/meta.db"


def test_histories_on_sqlite() -> None:
    """Upload, copy, move, overwrite, delete, expiry and bucket deletes, in any order."""
    with _sqlite_url() as url:
        _run(url, examples=20, steps=25)


def test_histories_on_postgres(postgres_url: str) -> None:
    """The same on PostgreSQL, fewer: each step reads all tables, in minutes on a loaded machine."""
    _run(postgres_url, examples=6, steps=25)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_long_histories(postgres_url: str) -> None:
    """Many more, on both databases."""
    _run(postgres_url, examples=200, steps=60)
    with _sqlite_url() as url:
        _run(url, examples=400, steps=60)
