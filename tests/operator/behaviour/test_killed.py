"""A copy killed before or after any of its requests, on every service.

The process that dies is a layer that lets nothing through any more, and a copier that is dropped;
what it wrote down is the checkpoint after its last step. Then another operator resumes or sweeps.
"""

import gc
import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

import pytest

from calque.errors import CheckpointInvalid
from calque.operator import Checkpoint, Operator
from calque.operator.layers.chain import Call
from tests.operator.behaviour.case import Case, content

T = TypeVar("T")


class Killed(BaseException):
    """The process is gone: no handler of ours runs for it."""


class KillAt:
    """Lets so many requests through; the next dies before it is sent, or after its answer."""

    def __init__(self, number: int, *, answered: bool) -> None:
        self._left = number
        self._answered = answered
        self._lock = threading.Lock()
        self.sent = 0
        self.dead = False

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        with self._lock:
            if self.dead:
                raise Killed
            self.sent += 1
            last = self.sent > self._left
            self.dead = self.dead or last
        if last and not self._answered:
            raise Killed
        answer = proceed(call)
        if last:
            raise Killed
        return answer


def copy_and_die(
    op: Operator, case: Case, kill: KillAt, **options: bool
) -> tuple[bool, Checkpoint | None]:
    """Whether the copy came to its end, and the last checkpoint that was written down."""
    checkpoint = None
    try:
        copier = op.layer(kill).copier("from", "to", concurrent=2, chunk=case.part, **options)
        checkpoint = copier.checkpoint()
        for _ in copier:
            checkpoint = copier.checkpoint()
    except Killed:
        return False, checkpoint
    return True, copier.checkpoint()


def sweep(op: Operator) -> None:
    for leftover in list(op.leftovers()):
        op.remove_leftover(leftover)


@pytest.mark.parametrize(
    ("answered", "old"), [(False, None), (True, b"old")], ids=["unanswered", "answered"]
)
def test_killed_at_every_request(
    op: Operator, case: Case, need: Callable[..., None], answered: bool, old: bytes | None
) -> None:
    """Resumed or copied anew the target is right; until then it is the old one or the whole new
    one; after a sweep nothing is left."""
    need("copy", "copy_resumable")
    data = content(case.parted)
    op.write("from", data)
    number, finished = 0, False
    while not finished:
        op.delete("to")
        if old is not None:
            op.write("to", old)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            finished, checkpoint = copy_and_die(op, case, KillAt(number, answered=answered))
            gc.collect()
        there = op.read("to") if op.exists("to") else None
        assert there in (old, data)
        if not finished and checkpoint is not None:
            try:
                assert sum(op.resume(checkpoint)) == len(data)
            except CheckpointInvalid:
                op.copy("from", "to")
        elif not finished:
            op.copy("from", "to")
        assert op.read("to") == data
        sweep(op)
        assert list(op.leftovers()) == []
        number += 1
    assert number > 1


def test_killed_after_a_commit_that_must_be_new(
    op: Operator, case: Case, need: Callable[..., None]
) -> None:
    """With if_not_exists the target that stands in the way of a resume may be the copy's own: it
    reports completed, at whatever request it died."""
    need("copy", "copy_resumable", "copy_with_if_not_exists")
    data = content(case.parted)
    op.write("from", data)
    number, finished = 0, False
    while not finished:
        op.delete("to")
        kill = KillAt(number, answered=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            finished, checkpoint = copy_and_die(op, case, kill, if_not_exists=True)
            gc.collect()
        if checkpoint is not None:
            made = op.resume(checkpoint).run()
            assert made.size == len(data)
            assert op.read("to") == data
        sweep(op)
        number += 1
