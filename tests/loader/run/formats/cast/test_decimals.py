"""Decimals that were read as doubles are what was written, or are not taken."""

from __future__ import annotations

from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.loader.run.formats.cast.decimals import decimals_of_doubles, has_long_numbers
from calque.loader.run.formats.cast.python_values import column_of

numbers = st.decimals(allow_nan=False, allow_infinity=False, places=None).map(str) | st.builds(
    lambda digits, exponent: f"{digits}e{exponent}",
    st.integers(-(10**15) + 1, 10**15 - 1),
    st.integers(-400, 20),
)
kinds = st.builds(
    lambda precision, scale: pa.decimal128(precision, min(scale, precision)),
    st.integers(1, 38),
    st.integers(0, 18),
)


@settings(max_examples=600, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=5), kinds)
def test_the_same_as_from_text(texts: list[str], kind: pa.DataType) -> None:
    """Whatever is taken equals the exact cast of the text; what that refuses is never taken."""
    written = ",".join(texts).encode()
    if has_long_numbers(written):
        return
    doubles = pa.array([float(text) for text in texts], pa.float64())
    found = decimals_of_doubles(doubles, kind, written)
    exact = column_of([Context(prec=60).create_decimal(text) for text in texts], kind)
    if found is not None:
        assert exact.refused == ()
        assert found.equals(exact.values)


@pytest.mark.parametrize("before", range(8))
@pytest.mark.parametrize("number", ["9" * 16, "0.12345678901234", "123456789012345.6"])
def test_long_numbers_are_seen_wherever_they_stand(before: int, number: str) -> None:
    """Sixteen digits and points in a row are found at any offset."""
    assert has_long_numbers(b" " * before + number.encode() + b" ")


@pytest.mark.parametrize("text", ["98695.67", "-0.01", "0", "1e2", "9999999999.99", "150e-2"])
def test_usual_numbers_are_taken(text: str) -> None:
    """Numbers as they are commonly spelled go this way, NULL stays NULL."""
    kind = pa.decimal128(12, 2)
    found = decimals_of_doubles(pa.array([float(text), None]), kind, text.encode())
    assert found is not None
    assert found.to_pylist() == [Decimal(text).quantize(Decimal("0.01")), None]


@pytest.mark.parametrize("text", ["0.001", "1e10", "1e-5", "1e-400", "-3e-9999999", "0.1e-999"])
def test_numbers_that_do_not_fit_are_not_taken(text: str) -> None:
    """More places or digits than the column has, and numbers that vanish in a double."""
    kind = pa.decimal128(12, 2)
    assert decimals_of_doubles(pa.array([float(text)]), kind, text.encode()) is None
