"""The blocks driver, over a blob that holds staged and committed blocks."""

import threading
from collections.abc import Mapping, Sequence

import pytest

from calque.errors import CheckpointInvalid, Unavailable
from calque.operator.drivers.blocks import BlocksDriver
from calque.operator.drivers.verbs import Part
from calque.values import ByteRange, Metadata, PartPlan

PLAN = PartPlan(size=95, part_size=10)


class Blob:
    """One blob of a service that has no uploads: blocks are staged, then committed by a list."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lock = threading.Lock()
        self.blocks: dict[int, bytes] = {}
        self.content: bytes | None = None
        self.staged_count = 0
        self.fail_at: int | None = None
        self.discards = 0
        self.keeps_blocks = False

    def stage(self, number: int, span: ByteRange) -> Part:
        with self.lock:
            self.staged_count += 1
            if number == self.fail_at:
                raise Unavailable("not this block")
            self.blocks[number] = self.source[span.offset : span.last + 1]
            return self._part(number)

    def _part(self, number: int) -> Part:
        return Part(number, f"b{number}", len(self.blocks[number]))

    def list_staged(self) -> Mapping[int, Part]:
        with self.lock:
            return {number: self._part(number) for number in self.blocks}

    def commit(self, parts: Sequence[Part]) -> Metadata:
        assert [part.number for part in parts] == sorted(self.blocks)
        self.content = b"".join(self.blocks[part.number] for part in parts)
        self.blocks = {}
        return Metadata(path="to", size=len(self.content))

    def find_committed(self, parts: Sequence[Part]) -> Metadata | None:
        return None if self.content is None else Metadata(path="to", size=len(self.content))

    def discard(self) -> None:
        self.discards += 1
        if not self.keeps_blocks:
            self.blocks = {}


def drain(driver: BlocksDriver) -> list[int]:
    steps = []
    while (step := driver.step()) is not None:
        steps.append(step)
    return steps


@pytest.fixture
def blob() -> Blob:
    return Blob(bytes(range(95)))


def test_blocks_are_committed_in_order(blob: Blob) -> None:
    """Bytes are equal, steps sum up, nothing stays staged."""
    driver = BlocksDriver(blob, PLAN, concurrent=4)
    assert sum(drain(driver)) == 95
    assert blob.content == blob.source
    assert driver.result().size == 95
    driver.abort()
    assert blob.discards == 0


def test_a_failed_block_is_discarded_with_the_rest(blob: Blob) -> None:
    """The error is raised; an abort leaves nothing staged and no blob."""
    blob.fail_at = 5
    driver = BlocksDriver(blob, PLAN, concurrent=2)
    with pytest.raises(Unavailable):
        drain(driver)
    driver.abort()
    assert blob.blocks == {}
    assert blob.content is None


def test_blocks_that_the_service_keeps_are_no_error(blob: Blob) -> None:
    """Beside a blob that existed, uncommitted blocks are the service's to collect."""
    blob.keeps_blocks, blob.content = True, b"old"
    driver = BlocksDriver(blob, PLAN, concurrent=2)
    driver.step()
    driver.abort()
    assert blob.discards == 2
    assert blob.content == b"old"


def test_staged_blocks_are_not_staged_again(blob: Blob) -> None:
    """A resume stages what is missing and reports what was there."""
    driver = BlocksDriver(blob, PLAN, concurrent=1)
    for _ in range(4):
        driver.step()
    driver.pause()
    state, before = driver.state(), blob.staged_count
    assert state["driver"] == "blocks"
    blob.blocks[2] = b"short"
    resumed = BlocksDriver.resume_blocks(blob, state, concurrent=3, size=95)
    steps = drain(resumed)
    assert sum(steps) == 95
    assert blob.staged_count == before + 10 - (before - 1)
    assert blob.content == blob.source


def test_a_commit_before_the_checkpoint_is_complete(blob: Blob) -> None:
    """Nothing is staged and the blob is made of this copy: completed."""
    driver = BlocksDriver(blob, PLAN, concurrent=1)
    driver.step()
    state = driver.state()
    drain(driver)
    resumed = BlocksDriver.resume_blocks(blob, state, concurrent=1, size=95)
    assert drain(resumed) == [95]


def test_blocks_that_are_gone(blob: Blob) -> None:
    """Discarded or collected: refused. Never begun: it begins."""
    fresh = BlocksDriver(blob, PLAN, concurrent=1).state()
    driver = BlocksDriver(blob, PLAN, concurrent=1)
    driver.step()
    state = driver.state()
    driver.abort()
    with pytest.raises(CheckpointInvalid):
        BlocksDriver.resume_blocks(blob, state, concurrent=1, size=95)
    assert sum(drain(BlocksDriver.resume_blocks(blob, fresh, concurrent=1, size=95))) == 95
    assert blob.content == blob.source


@pytest.mark.parametrize(
    "plan", [None, {}, {"size": 94, "part_size": 10}, {"size": 95, "part_size": 0}]
)
def test_a_plan_of_another_object(blob: Blob, plan: object) -> None:
    """A plan that cannot be of this source is refused."""
    with pytest.raises(CheckpointInvalid):
        BlocksDriver.resume_blocks(blob, {"plan": plan, "parts": []}, concurrent=1, size=95)
