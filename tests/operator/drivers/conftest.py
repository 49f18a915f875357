"""An operator whose copies have many small parts."""

from collections.abc import Iterator

import pytest

from calque.operator import Operator

PART = 100
PARTS = 12
SIZE = PARTS * PART - 37


@pytest.fixture
def op() -> Iterator[Operator]:
    """A memory operator that holds ``from``, copied in twelve parts, the last one short."""
    with Operator.from_uri("memory://", threshold=50, part_size=PART) as operator:
        operator.write("from", bytes(number % 251 for number in range(SIZE)))
        yield operator
