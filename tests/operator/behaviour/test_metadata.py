"""What a copy carries over, on every service and on both sides of the threshold."""

from collections.abc import Callable
from dataclasses import fields

import pytest

from calque.operator import Operator
from calque.values import Metadata
from tests.operator.behaviour.case import Case, content

HEADERS = {
    "content_type": "text/csv; charset=utf-8",
    "content_encoding": "gzip",
    "content_language": "de",
    "content_disposition": 'attachment; filename="x.csv"',
    "cache_control": "max-age=60",
}
USER = {"owner": "data team", "run-id": "42"}
TAGS = {"stage": "raw", "cost centre": "a+b=c"}


@pytest.fixture(autouse=True)
def _keeps_metadata(need: Callable[..., None]) -> None:
    need("copy", "user_metadata")


def headers(found: Metadata) -> dict[str, object]:
    return {each.name: getattr(found, each.name) for each in fields(found) if each.name in HEADERS}


def test_write_keeps_headers_and_user_metadata(op: Operator, case: Case) -> None:
    """What was written beside the bytes is found again, for small and large objects."""
    for size in (case.small, case.large):
        op.write("m", content(size), user=USER, **HEADERS)  # type: ignore[arg-type]
        found = op.stat("m")
        assert headers(found) == HEADERS
        assert dict(found.user) == USER


def test_a_copy_carries_headers_and_user_metadata(op: Operator, case: Case) -> None:
    """Equal on both sides of the threshold."""
    for size in (0, case.small, case.large):
        op.write("from", content(size), user=USER, **HEADERS)  # type: ignore[arg-type]
        op.copy("from", "to")
        found = op.stat("to")
        assert headers(found) == HEADERS
        assert dict(found.user) == USER


def test_a_copy_replaces_the_old_targets_metadata(op: Operator, case: Case) -> None:
    """Nothing of the object that stood there before is mixed in."""
    for size in (case.small, case.large):
        op.write("from", content(size), user={"new": "1"}, content_type="a/b")
        op.write("to", b"old", user={"old": "1"}, cache_control="no-store")
        op.copy("from", "to")
        found = op.stat("to")
        assert dict(found.user) == {"new": "1"}
        assert found.content_type == "a/b"
        assert found.cache_control != "no-store"


def test_metadata_may_be_left_behind(op: Operator, case: Case) -> None:
    """carry_metadata=False makes a target with defaults, on both paths alike."""
    for size in (case.small, case.large):
        op.write("from", content(size), user=USER, **HEADERS)  # type: ignore[arg-type]
        op.copy("from", "to", carry_metadata=False)
        found = op.stat("to")
        assert dict(found.user) == {}
        assert found.content_encoding is None
        assert found.content_type != HEADERS["content_type"]


def test_tags_are_carried_or_left(op: Operator, case: Case, need: Callable[..., None]) -> None:
    """Tags follow carry_tags on both sides of the threshold."""
    need("tags")
    for size in (case.small, case.large):
        op.write("from", content(size), tags=TAGS)
        assert dict(op.stat("from").tags or {}) == TAGS
        op.copy("from", "to")
        assert dict(op.stat("to").tags or {}) == TAGS
        op.copy("from", "bare", carry_tags=False)
        assert dict(op.stat("bare").tags or {}) == {}
