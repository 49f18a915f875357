"""S3's way: an upload filled by range copies, committed at the end.

Parts in flight are ``part_queue``'s; a part's request that fails is repeated below, by
``operator/layers/retry.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from calque.errors import CalqueError, CheckpointInvalid, ConditionNotMatch, InvalidInput, NotFound
from calque.operator.drivers.finished import finished_state
from calque.operator.drivers.part_queue import PartQueue, pool_for
from calque.operator.drivers.parts_state import (
    parts_of,
    parts_to_json,
    plan_of,
    plan_to_json,
    select_fitting,
)
from calque.operator.drivers.verbs import CommitConflict, MultipartVerbs, Part
from calque.operator.interruptible import result_of
from calque.values import Backoff, ByteRange, Metadata, PartPlan

_RESTARTS = 3
"""New uploads after a commit that raced with another write."""
_ABORT_ROUNDS = 6
"""Times an abort is repeated while parts that were in flight still land."""
_ABORT_BACKOFF = Backoff(first=0.05)


class MultipartDriver:
    """One upload from its initiation to its commit or abort.

    Invariants: the upload's id is known from the moment the server gave it; a part's bytes are
    counted once, although a new upload may copy it again; nothing is in flight after an error,
    a pause or an abort.
    """

    _name = "multipart"
    in_any_order = True

    def __init__(self, verbs: MultipartVerbs, plan: PartPlan, *, concurrent: int) -> None:
        self._verbs = verbs
        self._plan = plan
        self._concurrent = concurrent
        self._pool: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None
        self._upload: str | None = None
        self._queue: PartQueue | None = None
        self._done: dict[int, Part] = {}
        self._counted: set[int] = set()
        self._restarts = 0
        self._held_before = 0
        self._may_land = False
        """A part that we hung up on goes on at the server, and may be stored after an abort."""
        self._result: Metadata | None = None

    @classmethod
    def resume(
        cls, verbs: MultipartVerbs, state: Mapping[str, Any], *, concurrent: int, size: int
    ) -> Self:
        """The driver of an earlier upload: the server's list of parts says what is done.

        Raises CheckpointInvalid where the upload is gone and has not made the target.
        """
        driver = cls(verbs, plan_of(state, size=size), concurrent=concurrent)
        upload, known = state.get("upload"), parts_of(state)
        if upload is None:
            return driver
        try:
            # The server is asked, not the checkpoint: parts may have landed after it was saved.
            held = select_fitting(driver._plan, verbs.list_parts(str(upload)))
        except NotFound as error:
            driver._adopt_commit(str(upload), known, error)
            return driver
        driver._continue(str(upload), held)
        return driver

    def _continue(self, upload: str, held: Mapping[int, Part]) -> None:
        self._upload, self._done = upload, dict(held)
        self._counted = set(held)
        self._held_before = sum(part.size for part in held.values())

    def _adopt_commit(self, upload: str, known: Mapping[int, Part], gone: NotFound) -> None:
        self._result = self._verbs.find_committed(upload, list(known.values()))
        if self._result is None:
            raise CheckpointInvalid(
                f"the upload {self._show(upload)} of the checkpoint is gone: aborted or removed",
                hint="Copy anew.",
            ) from gone
        self._held_before = self._plan.size

    @property
    def total(self) -> int:
        return self._plan.size

    def step(self) -> int | None:
        if self._held_before:
            held, self._held_before = self._held_before, 0
            return held
        if self._result is not None:
            return None
        try:
            return self._advance()
        except Exception:
            self._settle()
            raise

    def _advance(self) -> int | None:
        upload = self._ensure_upload()
        part = self._ensure_queue(upload).take()
        if part is not None:
            return self._count(part)
        try:
            self._commit(upload)
        except CommitConflict as conflict:
            self._restart(upload, conflict)
            return 0
        self._settle()
        return None

    def _ensure_upload(self) -> str:
        if self._upload is None:
            self._do(self._initiate)
        if self._upload is None:
            raise InvalidInput("the service opened an upload without an id")
        return self._upload

    def _initiate(self) -> None:
        self._upload = self._verbs.initiate()

    def _do(self, request: Callable[[], None]) -> None:
        """Run a request on a thread of the pool, which keeps its outcome by itself.

        An interrupt of this thread, at whatever instruction, then loses nothing: it goes on with
        the same request, or settles and finds what the request has brought.
        """
        if self._pending is None:
            self._pending = self._threads().submit(request)
        try:
            result_of(self._pending)
        finally:
            if self._pending.done():
                self._pending = None

    def _ensure_queue(self, upload: str) -> PartQueue:
        if self._queue is None:

            def copy(number: int, span: ByteRange) -> Part:
                return self._verbs.copy_part(upload, number, span)

            todo = (each for each in self._plan if each[0] not in self._done)
            self._queue = PartQueue(todo, copy, concurrent=self._concurrent, pool=self._threads())
        return self._queue

    def _count(self, part: Part) -> int:
        self._done[part.number] = part
        if part.number in self._counted:
            return 0
        self._counted.add(part.number)
        return part.size

    def _commit(self, upload: str) -> None:
        parts = [self._done[number] for number, _ in self._plan]

        def complete() -> None:
            try:
                self._result = self._verbs.complete(upload, parts)
            except NotFound:
                # The answer to an earlier try of this commit may have been lost on its way.
                self._result = self._verbs.find_committed(upload, parts)
                if self._result is None:
                    raise

        self._do(complete)

    def _restart(self, upload: str, conflict: CommitConflict) -> None:
        self._restarts += 1
        if self._restarts > _RESTARTS:
            raise ConditionNotMatch(
                f"the commit lost {self._restarts} races with other writers of the target",
                hint="Copy again when the others are done.",
            ) from conflict
        # Dropped before the next one begins, so that never two uploads of one copy are left behind.
        self._drop(upload)
        self._upload = self._queue = None
        self._done.clear()

    def open(self) -> None:
        """Open the upload and copy nothing yet: its parts may be brought by other processes."""
        self._ensure_upload()

    def copy_some(self, numbers: Collection[int]) -> int:
        """Copy these parts, and no others; how many bytes of them are there now.

        The upload is another's to commit or to abort. What it holds already is not copied again.
        """
        upload = self._ensure_upload()

        def copy(number: int, span: ByteRange) -> Part:
            return self._verbs.copy_part(upload, number, span)

        todo = (each for each in self._plan if each[0] in numbers and each[0] not in self._done)
        queue = PartQueue(todo, copy, concurrent=self._concurrent, pool=self._threads())
        self._queue = queue
        try:
            while (part := queue.take()) is not None:
                self._count(part)
        finally:
            self._settle()
        return sum(part.size for number, part in self._done.items() if number in numbers)

    def abort(self) -> None:
        """Wait for what is in flight, then drop the upload until the server knows it no more."""
        self._settle()
        if self._result is None and self._upload is not None:
            self._drop(self._upload)
            self._upload = None

    def pause(self) -> None:
        """Wait for what is in flight and keep the upload."""
        self._settle()

    def _settle(self) -> None:
        """Let every request under way come to its end, and keep what it has brought."""
        if self._pool is not None:
            # First the threads, then what they brought: a part that lands later would be lost.
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = self._pending = None
        if self._queue is not None:
            self._done.update({part.number: part for part in self._queue.drain()})
            self._may_land |= self._queue.has_given_up
            self._queue = None

    def _drop(self, upload: str) -> None:
        clean = 0
        try:
            for attempt in range(1, _ABORT_ROUNDS + 1):
                # S3: parts that are in flight during an abort may still land, and are stored and
                # paid for.
                self._verbs.abort(upload)
                clean = 0 if self._holds_parts(upload) else clean + 1
                if clean > self._may_land:
                    return
                _ABORT_BACKOFF.sleep(attempt)
        except Exception as error:
            error.add_note(f"left behind: multipart upload {self._show(upload)}")
            raise
        shown = self._show(upload)
        left = CalqueError(f"the upload {shown} still holds parts after {_ABORT_ROUNDS} aborts")
        left.add_note(f"left behind: multipart upload {shown}")
        raise left

    def _show(self, upload: str) -> str:
        """The upload as messages name it."""
        return upload

    def _holds_parts(self, upload: str) -> bool:
        try:
            return bool(self._verbs.list_parts(upload))
        except NotFound:
            return False

    def result(self) -> Metadata:
        if self._result is None:
            raise InvalidInput("the copy is not complete and has no metadata yet")
        return self._result

    def state(self) -> Mapping[str, Any]:
        if self._result is not None:
            return finished_state(self._name, self._result)
        return {
            "driver": self._name,
            "upload": self._upload,
            "plan": plan_to_json(self._plan),
            "parts": parts_to_json(self._done.values()),
        }

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = pool_for(self._concurrent, self._plan.count)
        return self._pool
