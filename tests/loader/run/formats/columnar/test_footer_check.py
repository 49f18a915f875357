"""Parquet footers that contradict themselves: refused before the library ends the process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from calque.errors import CalqueError
from calque.loader.model.file_formats import ParquetFormat
from calque.loader.run.formats.columnar.footer_check import Leaf, find_contradiction
from calque.loader.run.formats.columnar.parquet import footer_of
from calque.loader.run.formats.guard import refuse_on_error
from calque.loader.run.formats.reader import ReadSpec
from calque.loader.run.infer import infer_schema
from calque.loader.run.writing.copy_parquet import fits_table
from calque.loader.run.writing.footer import column_stats
from tests.loader.run.formats.conftest import Stage
from tests.loader.run.formats.mutants import SCHEMA, SEEDS, footer_mutant

SPEC = ReadSpec(format=ParquetFormat(), schema=SCHEMA, match="name")


def survive(folder: Path, numbers: range) -> None:
    """Look at damaged footers in every way that a load does."""
    stage = Stage(folder)
    for number in numbers:
        (folder.parent / "last").write_text(str(number))
        data = SEEDS["parquet" if number % 2 else "parquet-plain"][2]()
        file = stage.staged("f.parquet", footer_mutant(data, random.Random(f"footer/{number}")))
        with suppress(CalqueError):
            infer_schema([file], ParquetFormat())
        source = stage.source(file)
        with suppress(CalqueError), refuse_on_error(source, "parquet"):
            metadata = footer_of(source)
            fits_table(SPEC, metadata, column_stats(metadata))


def survive_apart(folder: Path, count: int) -> None:
    (folder / "stage").mkdir()
    words = [sys.executable, "-m", __name__, str(folder / "stage"), str(count)]
    done = subprocess.run(words, capture_output=True, text=True)
    last = (folder / "last").read_text()
    assert done.returncode == 0, f"mutant {last}: {done.stderr[-1000:]}"


def test_damaged_footers(tmp_path: Path) -> None:
    """Some of these ended the process, by levels that were counted wrong."""
    survive_apart(tmp_path, 250)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_damaged_footers(tmp_path: Path) -> None:
    """Ten thousand of them."""
    survive_apart(tmp_path, int(os.environ.get("CALQUE_FUZZ_COUNT", "10000")))


def chunk(*sizes: int) -> bytes:
    """A footer of one row group with one column, whose size statistics are these bytes."""
    statistics = bytes((0x0C, 0x20, *sizes, 0)) if sizes else b""
    # Field 16 of the chunk's metadata, 3 of the chunk, 1 of the group and 4 of the file.
    return b"\x49\x1c\x19\x1c\x3c" + statistics + b"\0\0\0\0"


@pytest.mark.parametrize(
    ("footer", "told"),
    [
        (chunk(), None),
        (chunk(0x39, 0x26, 2, 2), None),  # two levels of definition
        (chunk(0x39, 0x36, 2, 2, 2), "column 1 counts 3 levels and has 2"),
        (chunk(0x29, 0x26, 2, 2), "column 1 counts 2 levels and has 1"),  # repetition
        (chunk(0x16, 2), "column 1 counts the bytes of texts and has none"),
        (b"\x49\x1c\x19\x1c\0\0\0", "column 1 is not described"),
        (b"\x49\x1c\x19", "it cannot be followed"),
        (b"\x1c" * 100, "it cannot be followed"),
        (b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "it cannot be followed"),
    ],
)
def test_what_is_found(footer: bytes, told: str | None) -> None:
    """A column with one level of definition and none of repetition, written by hand."""
    assert find_contradiction(footer, [Leaf(0, 1, is_text=False)]) == told


if __name__ == "__main__":
    survive(Path(sys.argv[1]), range(int(sys.argv[2])))
