"""Metadata as values: equal, frozen, picklable, however they were made."""

import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.values import Metadata

MAYBE = st.none() | st.text(max_size=5)


@given(path=st.text(), size=st.integers(0), etag=MAYBE, token=MAYBE, storage_class=MAYBE)
def test_a_listed_object_is_like_any_other(
    path: str, size: int, etag: str | None, token: str | None, storage_class: str | None
) -> None:
    """The fast way makes exactly what the constructor makes."""
    when = datetime.now(UTC)
    fast = Metadata.from_listing(
        path, size, when, etag=etag, token=token, storage_class=storage_class
    )
    plain = Metadata(
        path=path,
        size=size,
        last_modified=when,
        etag=etag,
        token=token,
        storage_class=storage_class,
    )
    assert fast == plain
    assert repr(fast) == repr(plain)
    assert pickle.loads(pickle.dumps(fast)) == plain
    with pytest.raises(FrozenInstanceError):
        fast.size = 1  # type: ignore[misc]
