"""The asynchronous face: the same verbs, and cancellation."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from calque.errors import Aborted, NotFound, Unavailable, Unexpected
from calque.operator import AsyncCopier, AsyncOperator, Copier, Operator
from tests.operator.recorder import Hook, Recorder, failing

SIZE, PART = 1150, 100


@pytest.fixture
def plain() -> Operator:
    """An operator whose ``from`` is copied in twelve parts."""
    op = Operator.from_uri("memory://", threshold=50, part_size=PART)
    op.write("from", bytes(number % 251 for number in range(SIZE)))
    return op


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


def test_both_faces_have_the_same_verbs() -> None:
    """Whatever one can do, the other can."""
    assert public(AsyncOperator) - {"operator"} == public(Operator) - {"locate"}
    # Parts are shared out by the driver of a cluster, which has no event loop.
    assert public(AsyncCopier) == public(Copier) - {"open_parts"}


def test_verbs(plain: Operator) -> None:
    """Each verb answers as its synchronous twin."""

    async def main() -> None:
        async with AsyncOperator(plain) as op:
            assert (await op.stat("from")).size == SIZE
            assert await op.exists("from")
            assert not await op.exists("missing")
            with pytest.raises(NotFound):
                await op.stat("missing")
            assert await op.read("from", offset=3, length=2) == bytes([3, 4])
            assert b"".join([chunk async for chunk in op.read_stream("from")]) == await op.read(
                "from"
            )
            await op.write("w", b"bytes")
            await op.copy("w", "w2")
            assert [entry.path async for entry in op.list()] == ["from", "w", "w2"]
            await op.delete("w")
            assert not await op.exists("w")
            assert op.location("x") == plain.location("x")
            assert op.capability == plain.capability
            assert [left async for left in op.leftovers()] == []

    asyncio.run(main())


def test_copier_steps(plain: Operator) -> None:
    """Steps sum up, progress ends at the total, the end keeps ending."""

    async def main() -> None:
        op = AsyncOperator(plain)
        async with await op.copier("from", "to", concurrent=3) as copier:
            assert copier.route == "server-side"
            steps = [step async for step in copier]
            assert sum(steps) == SIZE
            assert copier.progress.copied == copier.progress.total == SIZE
            assert [step async for step in copier] == []
            assert copier.metadata.size == SIZE
        paused = await op.copier("from", "again", concurrent=1)
        await anext(paused)
        checkpoint = await paused.pause()
        resumed = await op.resume(checkpoint.to_json())
        assert sum([step async for step in resumed]) == SIZE

    asyncio.run(main())


def test_errors_pass_and_abort_cleans(plain: Operator) -> None:
    """The original error is raised, again and again; nothing is left after copy()."""
    wrong = Unexpected("part is wrong")

    async def main() -> None:
        op = AsyncOperator(plain.layer(Hook("copy_part", failing(wrong, *range(2, 99)))))
        with pytest.raises(Unexpected):
            await op.copy("from", "to")
        copier = await op.copier("from", "to", concurrent=1)
        for _ in range(2):
            with pytest.raises(Unexpected):
                [step async for step in copier]
        await copier.abort()
        await copier.abort()

    asyncio.run(main())
    assert list(plain.leftovers()) == []


def cancelled_in(
    plain: Operator, verb: str, at: int, work: Callable[[AsyncOperator], Awaitable[object]]
) -> Recorder:
    """Run a task and cancel it while the ``at``-th request of a verb is held by the server."""
    inside, go_on = threading.Event(), threading.Event()
    seen = Recorder()

    def hold(number: int) -> None:
        if number == at:
            inside.set()
            go_on.wait(30)

    async def main() -> None:
        op = AsyncOperator(plain.layer(Hook(verb, hold)).layer(seen))
        task = asyncio.ensure_future(work(op))
        await asyncio.to_thread(inside.wait, 30)
        task.cancel()
        await asyncio.sleep(0.02)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await op.close()

    asyncio.run(main())
    return seen


@pytest.mark.parametrize(("verb", "at"), [("initiate", 1), ("copy_part", 1), ("copy_part", 7)])
def test_a_cancelled_copy_is_aborted(plain: Operator, verb: str, at: int) -> None:
    """Cancelled twice at any request: in-flight parts end, the upload is gone, no target."""
    seen = cancelled_in(plain, verb, at, lambda op: op.copy("from", "to", concurrent=3))
    assert seen.flying.total() == 0
    assert seen.count("abort") >= 1
    assert list(plain.leftovers()) == []
    assert not plain.exists("to")


def test_a_copy_cancelled_in_its_commit_is_whole_or_nothing(plain: Operator) -> None:
    """The commit under way comes to its end; the target it made is whole."""
    cancelled_in(plain, "complete", 1, lambda op: op.copy("from", "to"))
    assert list(plain.leftovers()) == []
    assert plain.read("to") == plain.read("from")


def test_a_cancelled_with_block_is_aborted(plain: Operator) -> None:
    """Driven by hand inside ``async with``: the same."""

    async def drive(op: AsyncOperator) -> None:
        async with await op.copier("from", "to", concurrent=2) as copier:
            async for _ in copier:
                pass

    cancelled_in(plain, "copy_part", 4, drive)
    assert list(plain.leftovers()) == []
    assert not plain.exists("to")


def test_a_cancelled_abort_comes_to_its_end(plain: Operator) -> None:
    """Who cancels a task that is aborting hears of it only when nothing is left."""
    inside, go_on = threading.Event(), threading.Event()

    def hold(_: int) -> None:
        inside.set()
        go_on.wait(30)

    async def main() -> None:
        op = AsyncOperator(plain.layer(Hook("abort", hold)))
        copier = await op.copier("from", "to", concurrent=2)
        await anext(copier)
        task = asyncio.ensure_future(copier.abort())
        await asyncio.to_thread(inside.wait, 30)
        task.cancel()
        await asyncio.sleep(0.02)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list(plain.leftovers()) == []
        await op.close()

    asyncio.run(main())


def test_a_timeout_aborts_too(plain: Operator) -> None:
    """asyncio.timeout around a copy is a cancellation like any other."""
    go_on = threading.Event()

    async def main() -> None:
        op = AsyncOperator(plain.layer(Hook("copy_part", lambda _: go_on.wait(30) and None)))
        # Due after the timeout, so run after it by the same loop, however late both are.
        asyncio.get_running_loop().call_later(0.2, go_on.set)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await op.copy("from", "to", concurrent=2)

    asyncio.run(main())
    assert list(plain.leftovers()) == []
    assert not plain.exists("to")


def test_an_asynchronous_source_is_written(plain: Operator) -> None:
    """Chunks come from the loop; one that fails, fails the write."""

    async def chunks(broken: bool) -> AsyncIterator[bytes]:
        for number in range(5):
            await asyncio.sleep(0)
            yield b"%d" % number
        if broken:
            raise Unavailable("source is gone")

    async def main() -> None:
        op = AsyncOperator(plain)
        await op.write("good", chunks(False))
        assert await op.read("good") == b"01234"
        with pytest.raises(Unavailable):
            await op.write("bad", chunks(True))
        assert not await op.exists("bad")

    asyncio.run(main())


def test_a_cancelled_write_from_a_slow_source(plain: Operator) -> None:
    """The write is told of the cancellation, even while it waits for a chunk."""
    waiting = threading.Event()

    async def never() -> AsyncIterator[bytes]:
        yield b"first"
        waiting.set()
        await asyncio.Event().wait()

    async def main() -> None:
        op = AsyncOperator(plain)
        task = asyncio.ensure_future(op.write("w", never()))
        await asyncio.to_thread(waiting.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await op.close()

    asyncio.run(main())
    assert not plain.exists("w")


def test_many_copies_at_once(plain: Operator) -> None:
    """More copies than threads: all finish."""

    async def main() -> None:
        op = AsyncOperator(plain, threads=3)
        await asyncio.gather(*(op.copy("from", f"to{n}", concurrent=2) for n in range(20)))
        await op.close()

    asyncio.run(main())
    assert sum(1 for _ in plain.list("to")) == 20


def test_aborted_steps_raise(plain: Operator) -> None:
    """A step after abort raises Aborted."""

    async def main() -> None:
        copier = await AsyncOperator(plain).copier("from", "to")
        await anext(copier)
        await copier.abort()
        with pytest.raises(Aborted):
            await anext(copier)

    asyncio.run(main())
