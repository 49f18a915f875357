"""CRCs of pieces joined are those of the whole."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from awscrt import checksums as crt
from hypothesis import given
from hypothesis import strategies as st

from calque.values.crc import JOINABLE, join_crcs

_WIDTHS = {"crc32": 4, "crc32c": 4, "crc64nvme": 8}


def _value(algorithm: str, data: bytes) -> str:
    make: Callable[[bytes], int] = getattr(crt, algorithm)
    return base64.b64encode(make(data).to_bytes(_WIDTHS[algorithm], "big")).decode()


@given(pieces=st.lists(st.binary(max_size=300), max_size=8))
@pytest.mark.parametrize("algorithm", sorted(_WIDTHS))
def test_they_join_as_the_bytes_do(algorithm: str, pieces: list[bytes]) -> None:
    """However the bytes are cut, empty pieces included."""
    told = [(_value(algorithm, piece), len(piece)) for piece in pieces]
    assert join_crcs(algorithm, told).value == _value(algorithm, b"".join(pieces))


@pytest.mark.parametrize("algorithm", sorted(_WIDTHS))
def test_large_sizes(algorithm: str) -> None:
    """Sizes of real parts, and one beyond 32 bits, as another library joins them."""
    assert _WIDTHS.keys() == JOINABLE
    join = getattr(crt, f"combine_{algorithm}")
    for size in (5 * 1024**2, 5 * 1024**3, 7):
        one, other = _value(algorithm, b"first"), _value(algorithm, b"second")
        wanted = join(*(int.from_bytes(base64.b64decode(v), "big") for v in (one, other)), size)
        found = join_crcs(algorithm, [(one, 5), (other, size)]).value
        assert int.from_bytes(base64.b64decode(found), "big") == wanted


@pytest.mark.parametrize("value", ["", "AAAA", "no base64", "AAAAAAAAAAAAAAAAAAAA"])
def test_what_is_no_checksum_is_refused(value: str) -> None:
    """A checkpoint may have been written by hand."""
    for algorithm in JOINABLE:
        with pytest.raises(ValueError, match="checksum"):
            join_crcs(algorithm, [(value, 1)])
