"""The asynchronous face, on every service."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from calque.operator import AsyncOperator, Operator
from tests.operator.behaviour.case import Case, content
from tests.operator.recorder import Recorder


def test_verbs_and_copies(op: Operator, case: Case, need: Callable[..., None]) -> None:
    """Written, listed, copied, read and deleted as by the synchronous face."""
    need("copy")
    data = content(case.large)

    async def main() -> None:
        face = AsyncOperator(op)
        await face.write("from", data)
        async with await face.copier("from", "to", concurrent=3) as copier:
            assert sum([step async for step in copier]) == len(data)
        assert copier.metadata.size == len(data)
        assert await face.read("to") == data
        assert [entry.path async for entry in face.list()] == ["from", "to"]
        await face.delete("to")
        assert not await face.exists("to")

    asyncio.run(main())


def test_a_cancelled_copy_leaves_nothing(
    op: Operator, case: Case, need: Callable[..., None]
) -> None:
    """Cancelled after its first requests: the old target stays, nothing is left behind."""
    need("copy")
    if case.threshold is None:
        pytest.skip("every copy is one request")
    op.write("from", content(case.large))
    op.write("to", b"old")
    begun = threading.Event()

    class Watch(Recorder):
        """Tells when the copy has begun to write."""

        def __call__(self, call, proceed):  # type: ignore[no-untyped-def]
            answer = super().__call__(call, proceed)
            if call.verb not in ("stat", "read"):
                begun.set()
            return answer

    async def main() -> None:
        face = AsyncOperator(op.layer(Watch()))
        copying = asyncio.ensure_future(face.copy("from", "to", concurrent=1, chunk=case.part))
        await asyncio.to_thread(begun.wait, 30)
        copying.cancel()
        done, _ = await asyncio.wait([copying])
        assert done == {copying}

    asyncio.run(main())
    assert op.read("to") in (b"old", op.read("from"))
    assert sorted(entry.path for entry in op.list()) == ["from", "to"]
    assert list(op.leftovers()) == []
