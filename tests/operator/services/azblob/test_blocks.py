"""Block ids."""

from datetime import UTC, datetime, timedelta

from azure.storage.blob import BlobBlock
from hypothesis import given
from hypothesis import strategies as st

from calque.operator.services.azblob import blocks
from calque.operator.services.azblob.blocks import LIMITS, Block
from calque.values import MIB, PartPlan


@given(st.integers(1, LIMITS.most))
def test_ids_are_read_back_and_equally_long(number: int) -> None:
    """The service demands one length; we must know our own again."""
    block = Block(blocks.new_write(), number)
    assert Block.read(block.id) == block
    assert len(block.id) == len(Block(blocks.new_write(), 1).id) <= 64


@given(st.text(max_size=80))
def test_what_is_not_ours_is_not_taken_for_ours(text: str) -> None:
    """Any other id, base64 or not, is somebody else's."""
    assert Block.read(text) is None
    assert Block.read(BlobBlock(block_id=text or "x").id) is None


def test_an_id_tells_when_its_write_began() -> None:
    """So that a sweep may spare the young."""
    began = blocks.start_of(blocks.new_write())
    assert abs(datetime.now(UTC) - began) < timedelta(minutes=1)


@given(st.integers(1, 190 * 1024**4), st.integers(1, 5000 * MIB))
def test_plans_keep_the_services_limits(size: int, wanted: int) -> None:
    """Never more than 50,000 blocks, none over 4000 MiB; the block grows instead."""
    plan = PartPlan.make(size, wanted, LIMITS)
    assert plan.count <= 50_000
    assert plan.part_size <= 4000 * MIB
    assert plan.range_of(plan.count).last == size - 1
