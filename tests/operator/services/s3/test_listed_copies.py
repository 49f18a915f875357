"""Copies of what a listing has told: one request each, and as safe as others."""

from __future__ import annotations

import pytest

from calque.errors import ConditionNotMatch, NotFound
from calque.operator import Operator
from tests.operator.recorder import Recorder
from tests.operator.services.s3.conftest import Open
from tests.operator.services.s3.server import make_bucket
from tests.servers.proxy import FaultProxy
from tests.servers.seaweedfs import S3Server


def test_one_request_a_copy(op: Operator) -> None:
    """No stat before, none after: the listed ETag pins the source and proves the target."""
    op.write("from", b"data", content_type="text/x", user={"k": "v"}, tags={"t": "1"})
    entry, seen = next(op.list("from")), Recorder()
    made = op.layer(seen).copy(entry, "to")
    assert seen.verbs == ["copy"]
    found = op.stat("to")
    assert made.etag == found.etag == entry.etag
    assert found.content_type == "text/x"
    assert dict(found.user) == {"k": "v"}
    assert found.tags == {"t": "1"}


def test_the_pin_is_sent(op: Operator, through: Operator, proxy: FaultProxy) -> None:
    """The server compares the ETag; an object that was replaced or deleted since is not copied."""
    op.write("from", b"data")
    entry = next(op.list("from"))
    through.copy(entry, "to")
    (sent,) = proxy.seen("PUT")
    assert sent.headers["x-amz-copy-source-if-match"] == f'"{entry.etag}"'
    op.write("from", b"other")
    with pytest.raises(ConditionNotMatch, match="changed"):
        through.copy(entry, "to")
    op.delete("from")
    with pytest.raises(NotFound):
        through.copy(entry, "to")
    assert op.read("to") == b"data"


def test_where_pins_are_ignored_it_is_looked_at_first(open_at: Open) -> None:
    """A server that does not obey the pin gets no copy of something it was not asked about."""
    op = open_at(source_pins=False)
    op.write("from", b"data")
    entry, seen = next(op.list("from")), Recorder()
    op.layer(seen).copy(entry, "to")
    assert seen.verbs[0] == "stat"


def test_a_checkpoint_of_a_listed_source(server: S3Server, open_at: Open) -> None:
    """A listing tells no version; the resume takes the same bytes for the same source."""
    make_bucket(server, "listed-versions", versions=True)
    op = open_at(bucket="listed-versions", versions=True)
    op.write("from", b"data")
    copier = op.copier(next(op.list("from")), "to")
    assert op.resume(copier.pause()).run().size == 4
    stale = op.copier(next(op.list("from")), "to").pause()
    op.write("from", b"newer")
    with pytest.raises(ValueError, match="changed"):
        op.resume(stale)
