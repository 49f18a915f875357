"""Delete, on every service."""

from collections.abc import Callable

import pytest

from calque.errors import ConditionNotMatch, IsADirectory
from calque.operator import Operator


def test_what_was_deleted_is_gone(op: Operator) -> None:
    """The object is gone, its neighbours are not; deleting it again is no error."""
    op.write("d/a", b"1")
    op.write("d/ab", b"2")
    op.delete("d/a")
    op.delete("d/a")
    assert not op.exists("d/a")
    assert op.read("d/ab") == b"2"


@pytest.mark.parametrize("path", ["", "d/"])
def test_a_directory_cannot_be_deleted(op: Operator, path: str) -> None:
    """Deleting names one object; what is below a directory stays."""
    op.write("d/a", b"1")
    with pytest.raises(IsADirectory):
        op.delete(path)
    assert op.exists("d/a")


def test_a_pinned_delete_spares_other_bytes(op: Operator, need: Callable[..., None]) -> None:
    """Only the object that was seen is removed."""
    need("delete_with_if_match")
    op.write("p", b"1")
    pin = op.stat("p").pin
    op.write("p", b"2")
    with pytest.raises(ConditionNotMatch):
        op.delete("p", if_match=pin)
    assert op.read("p") == b"2"
    op.delete("p", if_match=op.stat("p").pin)
    assert not op.exists("p")


def test_names_that_sound_like_errors(op: Operator) -> None:
    """What a key is called does not change what its absence means."""
    for key in ("the bucket", "the container", "NoSuchBucket", "bucket does not exist"):
        op.delete(key)
        assert not op.exists(key)
