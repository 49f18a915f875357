"""Byte ranges and part plans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.values import GIB, MIB, ByteRange, PartLimits, PartPlan

S3 = PartLimits(smallest=5 * MIB, largest=5 * GIB, most=10_000)
AZURE = PartLimits(smallest=1, largest=4000 * MIB, most=50_000)


@given(
    size=st.integers(1, 50 * 10**12),
    wanted=st.integers(1, 10 * GIB),
    limits=st.sampled_from([S3, AZURE]),
)
def test_every_plan_keeps_the_limits(size: int, wanted: int, limits: PartLimits) -> None:
    """Up to the largest object there is: parts are never too small, too large or too many."""
    plan = PartPlan.make(size, wanted, limits)
    assert 1 <= plan.count <= limits.most
    assert plan.part_size <= limits.largest
    assert plan.count == 1 or plan.part_size >= limits.smallest
    first, last = plan.range_of(1), plan.range_of(plan.count)
    assert first.offset == 0
    assert last.offset + (last.length or 0) == size
    assert 0 < (last.length or 0) <= plan.part_size


@given(size=st.integers(1, 5000), part=st.integers(1, 600))
def test_ranges_cover_the_object_without_gap_or_overlap(size: int, part: int) -> None:
    """Each byte is in exactly one part, and numbers run from 1."""
    plan = PartPlan(size, part)
    end, numbers = 0, []
    for number, span in plan:
        numbers.append(number)
        assert span.offset == end
        assert span.length
        end = span.last + 1
    assert end == size
    assert numbers == list(range(1, plan.count + 1))


def test_the_part_grows_where_there_would_be_too_many() -> None:
    """An object of 1 TiB wanted in 8 MiB parts has ten thousand larger ones; it is no error."""
    plan = PartPlan.make(1024 * GIB, 8 * MIB, S3)
    assert plan.count == 10_000
    assert plan.part_size > 8 * MIB


def test_what_cannot_be_planned() -> None:
    """An empty object, or one larger than the service can hold."""
    with pytest.raises(ValueError, match="bytes"):
        PartPlan.make(0, MIB, S3)
    with pytest.raises(ValueError, match="do not fit"):
        PartPlan.make(10_000 * 5 * GIB + 1, MIB, S3)
    with pytest.raises(ValueError, match="no part"):
        PartPlan(10, 5).range_of(3)
    with pytest.raises(ValueError, match="negative"):
        ByteRange(-1)
    with pytest.raises(ValueError, match="last"):
        _ = ByteRange(3, 0).last
