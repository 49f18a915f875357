"""Reads of what is new only, and of one version among several."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from calque.errors import ConditionNotMatch, InvalidInput, Unsupported
from calque.operator import Operator
from calque.operator.service import Versioned

DAY = timedelta(days=1)


def test_what_is_known_already_is_not_read(op: Operator, need: Callable[..., None]) -> None:
    """if_none_match with the pin of the object is ConditionNotMatch; with another it reads."""
    need("read_with_if_match")
    op.write("x", b"data")
    known = op.stat("x").pin
    with pytest.raises(ConditionNotMatch):
        op.read("x", if_none_match=known)
    with pytest.raises(ConditionNotMatch):
        op.read_stream("x", if_none_match=known)
    assert op.read("x", if_none_match="another", offset=1, length=2) == b"at"
    op.write("x", b"other data")
    assert b"".join(op.read_stream("x", if_none_match=known)) == b"other data"


def test_times(op: Operator, need: Callable[..., None]) -> None:
    """Since and until when an object may have changed; a time without a zone is refused."""
    need("read_with_if_match")
    op.write("x", b"data")
    now = datetime.now(UTC)
    assert op.read("x", if_modified_since=now - DAY) == b"data"
    assert op.read("x", if_unmodified_since=now + DAY) == b"data"
    for unless in ({"if_modified_since": now + DAY}, {"if_unmodified_since": now - DAY}):
        with pytest.raises(ConditionNotMatch):
            op.read("x", **unless)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        op.read("x", if_modified_since=datetime(2026, 1, 1))
    with pytest.raises(InvalidInput):
        op.read("x", if_older=now)  # type: ignore[call-arg]


def test_versions_are_listed(op: Operator, need: Callable[..., None]) -> None:
    """Every version of every key, the newest first; each can be read by its name."""
    if not op.capability.versions:
        with pytest.raises(Unsupported) as refused:
            op.list_versions()
        # Told apart: a bucket that may keep them was only not opened so.
        assert ("versions=true" in str(refused.value)) == isinstance(op.service, Versioned)
        if not isinstance(op.service, Versioned):
            for ask in (op.stat, op.read, op.delete):
                with pytest.raises(Unsupported):
                    ask("x", version="1")  # type: ignore[operator]
    need("versions")
    for data in (b"1", b"22", b"333"):
        op.write("a/x", data)
    op.write("b", b"one")
    op.delete("b")
    found = list(op.list_versions("a/"))
    assert [(each.path, each.size) for each in found] == [("a/x", 3), ("a/x", 2), ("a/x", 1)]
    assert [len(op.read("a/x", version=each.version)) for each in found] == [3, 2, 1]
