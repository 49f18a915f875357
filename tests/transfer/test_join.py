"""Two listings as pairs, beside a naive model; and in flat memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some

from calque.errors import Unexpected
from calque.operator import Operator
from calque.transfer.model import Entries, sort_key
from calque.transfer.plan.join import join
from calque.transfer.plan.side import Side, in_key_order
from calque.values import Metadata

PATHS = some.sets(
    some.text(
        some.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6
    )
)


def listing(paths: set[str]) -> Entries:
    return iter([(path, Metadata(path=path)) for path in sorted(paths, key=sort_key)])


@given(PATHS, PATHS)
def test_each_path_once_with_both_sides(ours: set[str], theirs: set[str]) -> None:
    """As a union of sets would have it, in the order of bytes."""
    pairs = list(join(listing(ours), listing(theirs)))
    assert [pair.path for pair in pairs] == sorted(ours | theirs, key=sort_key)
    for pair in pairs:
        assert (pair.source is not None) == (pair.path in ours)
        assert (pair.target is not None) == (pair.path in theirs)


def test_a_broken_order_is_no_listing() -> None:
    """Whatever lists it: what comes after a later path ends the join with an error, and a path that
    comes twice too, for what follows could not be told from what is missing."""
    service = Operator.from_uri("memory://broken-order").service
    for paths in (["a", "c", "b"], ["a", "a"]):
        entries = iter([(path, Metadata(path=path)) for path in paths])
        with pytest.raises(Unexpected, match="not the order of keys"):
            list(in_key_order(Side(service), entries))


PROGRAM = """
import sys
from calque.transfer.plan.join import join
from calque.values import Metadata
from tests.peak_memory import peak_mebibytes
def side(count):
    for number in range(count):
        path = f"dir/{number:09}"
        yield path, Metadata.from_listing(path, number)
count = int(sys.argv[1])
assert sum(1 for pair in join(side(count), side(count)) if pair.source and pair.target) == count
print(peak_mebibytes())
"""


@pytest.mark.soak
def test_a_million_a_side_in_flat_memory() -> None:
    """Under 200 MB, and no more than a tenth of them takes, but for noise."""
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", PROGRAM, str(count)],
                capture_output=True,
                text=True,
                check=True,
                timeout=600,
            ).stdout
        )
        for count in (100_000, 1_000_000)
    ]
    assert peaks[1] < 200
    assert peaks[1] < peaks[0] + 20
