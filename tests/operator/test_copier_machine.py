"""The Copier as a state machine: whatever is called in whatever order, its promises hold."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from calque.errors import Aborted, InvalidInput, Unexpected
from calque.operator import Copier, Operator
from tests.operator.recorder import Hook

PART = 10


class CopierMachine(RuleBasedStateMachine):
    """A copier over a memory service that may fail at a drawn part, against a naive model."""

    @initialize(
        size=st.integers(0, 95),
        concurrent=st.integers(1, 4),
        fail_at=st.none() | st.integers(1, 9),
        old=st.none() | st.binary(max_size=5),
    )
    def start(self, size: int, concurrent: int, fail_at: int | None, old: bytes | None) -> None:
        self.data = bytes(number % 256 for number in range(size))
        self.plain = Operator.from_uri("memory://", threshold=15, part_size=PART)
        self.plain.write("from", self.data)
        self.old = old
        if old is not None:
            self.plain.write("to", old)
        self.error = Unexpected("drawn")

        def act(number: int) -> None:
            if number == fail_at:
                raise self.error

        self.op = self.plain.layer(Hook("copy_part", act))
        self.concurrent = concurrent
        self.copier: Copier = self.op.copier("from", "to", concurrent=concurrent)
        self.state = "ready"
        self.sum = 0

    @rule()
    def step(self) -> None:
        try:
            copied = next(self.copier)
        except StopIteration:
            assert self.state in ("ready", "running", "done")
            assert self.sum == len(self.data)
            self.state = "done"
        except Aborted:
            assert self.state in ("aborted", "paused")
        except Unexpected as error:
            if error is not self.error:
                raise
            assert self.state in ("ready", "running", "failed", "failed then aborted")
            if self.state != "failed then aborted":
                self.state = "failed"
        else:
            assert self.state in ("ready", "running")
            assert copied >= 0
            self.sum += copied
            self.state = "running"

    @rule()
    def abort(self) -> None:
        self.copier.abort()
        if self.state in ("ready", "running"):
            # A copy of one request that was answered is complete: an abort cannot take it back.
            done = self.sum == len(self.data) <= 15 and self.state == "running"
            self.old = self.data if done else self.old
            self.state = "aborted"
        elif self.state == "failed":
            self.state = "failed then aborted"

    @precondition(lambda self: self.state in ("ready", "running", "failed"))
    @rule()
    def checkpoint_and_go_on_elsewhere(self) -> None:
        checkpoint = self.copier.pause().to_json()
        with pytest.raises((Aborted, Unexpected)):
            next(self.copier)
        self.copier = self.plain.resume(checkpoint, concurrent=self.concurrent)
        self.state, self.sum = "ready", 0

    @rule()
    def ask_for_metadata(self) -> None:
        try:
            assert self.copier.metadata.size == len(self.data)
            assert self.state == "done"
        except InvalidInput:
            assert self.state != "done"

    @invariant()
    def progress_is_the_sum_of_steps(self) -> None:
        progress = self.copier.progress
        assert progress.copied == self.sum <= len(self.data) == progress.total

    @invariant()
    def the_target_is_old_or_new(self) -> None:
        there = self.plain.read("to") if self.plain.exists("to") else None
        if self.state == "done":
            assert there == self.data
        else:
            assert there in (self.old, self.data if len(self.data) <= 15 else self.old)

    @invariant()
    def nothing_is_left_when_it_is_over(self) -> None:
        if self.state in ("done", "aborted", "failed then aborted"):
            assert list(self.plain.leftovers()) == []

    def teardown(self) -> None:
        if hasattr(self, "copier"):
            self.copier.abort()


CopierMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestCopierMachine = CopierMachine.TestCase
