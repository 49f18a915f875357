"""What a file system keeps of a file, as text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.values.file_attributes import USER_KEY, FileAttributes

_numbers = st.none() | st.integers(0, 2**63 - 1)


@given(_numbers, st.none() | st.integers(0, 0o7777), _numbers, _numbers)
def test_round_trip(mtime: int | None, mode: int | None, uid: int | None, gid: int | None) -> None:
    """What is told is read back, and what is not known stays so."""
    told = FileAttributes(mtime, mode, uid, gid)
    assert FileAttributes.of_user({USER_KEY: told.to_text()}) == told


@pytest.mark.parametrize(
    "text", ["", "nonsense", "mode=9", "mtime=-1", "mtime=", "uid=x gid", "size=3", "mtime=1e9"]
)
def test_nonsense(text: str) -> None:
    """What somebody else has written there counts as not known."""
    assert FileAttributes.of_user({USER_KEY: text}) == FileAttributes()


def test_no_bits_beside_the_mode() -> None:
    """A mode is a mode, whatever else stands in the number."""
    assert FileAttributes.of_user({USER_KEY: "mode=100755"}).mode == 0o755
