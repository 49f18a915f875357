"""Rejected rows, packed and unpacked."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from calque.values.row_errors import RowError, RowErrors, pack, unpack

TEXT = st.text(max_size=20)
ERRORS = st.lists(
    st.builds(
        RowError,
        file=st.just("in/a.csv"),
        line=st.integers(0, 10**9),
        record=st.integers(1, 10**9),
        column=st.none() | TEXT,
        character=st.none() | st.integers(0, 10**6),
        target_type=st.none() | TEXT,
        value=st.none() | TEXT,
        code=TEXT,
        message=TEXT,
        raw=st.none() | TEXT,
        byte_offset=st.none() | st.integers(0, 10**12),
    ),
    min_size=1,
    max_size=8,
)


@given(errors=ERRORS)
def test_errors_come_back_as_they_were_packed(errors: list[RowError]) -> None:
    """Order, every field and every character, surrogates aside, which no reader lets through."""
    assert list(unpack("in/a.csv", pack(errors))) == errors


@given(errors=ERRORS)
def test_packed_errors_are_a_sequence(errors: list[RowError]) -> None:
    """They count, index, slice and travel as the list that they were made of."""
    packed = RowErrors.of(errors)
    travelled = pickle.loads(pickle.dumps(packed))
    for one in (packed, RowErrors.of(packed), travelled):
        assert len(one) == len(errors)
        assert one[0] == errors[0]
        assert one[-1] == errors[-1]
        assert list(one[1:]) == errors[1:]
        assert list(one) == errors
