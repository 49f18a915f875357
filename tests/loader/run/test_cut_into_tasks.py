"""Files become tasks by bytes, not by their number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from calque.loader.model.file_formats import CsvFormat
from calque.loader.model.plan import Piece, TargetSchema, WritePlan, WriteTask
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.cut_into_tasks import LARGEST_TASK, cut, task_bytes
from calque.values import GIB, KIB, MIB, SourceIdentity
from tests.loader.run.conftest import AB


def staged(sizes: list[int]) -> list[StagedFile]:
    names = [f"{number:06d}.csv" for number in range(len(sizes))]
    return [
        StagedFile(f"s3://b/{name}", name, SourceIdentity(f"s3://b/{name}", size))
        for name, size in zip(names, sizes, strict=True)
    ]


def plan(files: list[StagedFile]) -> WritePlan:
    return WritePlan(
        load_id="x",
        root="/nowhere",
        tasks=(WriteTask(0, tuple(Piece(file) for file in files)),),
        format=CsvFormat(),
        target=TargetSchema(schema=AB),
    )


@given(st.lists(st.integers(0, GIB), max_size=40), st.integers(1, 16))
def test_every_byte_once(sizes: list[int], cores: int) -> None:
    """Every byte of every file is in exactly one piece, files in their order."""
    files = staged(sizes)
    tasks = cut(plan(files), cores)
    assert [task.number for task in tasks] == list(range(len(tasks)))
    pieces = [piece for task in tasks for piece in task.pieces]
    at: dict[str, int] = {}
    for piece in pieces:
        assert piece.offset == at.get(piece.file.location, 0)
        rest = piece.file.identity.size - piece.offset
        at[piece.file.location] = piece.offset + (rest if piece.length is None else piece.length)
    assert at == {file.location: file.identity.size for file in files}


def test_small_files_share_a_task() -> None:
    """100,000 files of 1 KB are one task, and so one data file."""
    assert len(cut(plan(staged([KIB] * 100_000)), 8)) == 1


def test_cores_are_kept_busy() -> None:
    """200 files of 10 MB on two cores: an even number of tasks of about the same size."""
    tasks = cut(plan(staged([10 * MIB] * 200)), 2)
    assert len(tasks) % 2 == 0
    assert max(task.bytes for task in tasks) < 1.3 * min(task.bytes for task in tasks)
    assert task_bytes(staged([10 * MIB] * 200), 2) <= LARGEST_TASK


def test_a_big_file_is_cut() -> None:
    """One file of 4 GB is read by many tasks."""
    tasks = cut(plan(staged([4 * GIB])), 4)
    assert len(tasks) >= 16
