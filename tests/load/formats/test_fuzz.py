"""Damaged files of every format: rows, refused rows or a refused file, and never anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from calque.errors import CalqueError
from calque.load.formats import ReadSpec, open_reader
from calque.load.infer import infer_schema
from calque.load.work import CsvFormat, FormatOptions
from tests.load.formats.conftest import Stage
from tests.load.formats.mutants import SCHEMA, SEEDS, mutants

SOME, MANY = 150, 10_000


def survive(stage: Stage, kind: str, seed: int, count: int, told: Path | None = None) -> None:
    """Infer and read every mutant; what is raised is ours, and every record is accounted for."""
    name, format, make = SEEDS[kind]
    for data in mutants(make(), seed, count):
        if told is not None:  # a library that ends the process leaves the culprit here
            told.write_bytes(data)
        file = stage.staged(name, data)
        with suppress(CalqueError):
            infer_schema([file], format)
        with suppress(CalqueError):
            for parsed in open_reader(stage.source(file), spec_of(format, SCHEMA)).read():
                assert parsed.rows.num_rows + len(parsed.rejected) == parsed.records
                parsed.rows.validate(full=True)


def spec_of(format: FormatOptions, schema: pa.Schema) -> ReadSpec:
    """By name, where the format has names."""
    headless = isinstance(format, CsvFormat) and not format.parse_header
    return ReadSpec(format=format, schema=schema, match="position" if headless else "name")


@pytest.mark.parametrize("kind", SEEDS)
def test_sound_files_are_read(stage: Stage, kind: str) -> None:
    """The files that are damaged below are sound before: else nothing would be shown."""
    name, format, make = SEEDS[kind]
    file = stage.staged(name, make())
    schema = infer_schema([file], format).schema
    parsed = list(open_reader(stage.source(file), spec_of(format, schema)).read())
    assert sum(batch.rows.num_rows for batch in parsed) == 40


@pytest.mark.parametrize("kind", SEEDS)
def test_damaged_files(stage: Stage, kind: str) -> None:
    """Some hundred damaged files of each format."""
    survive(stage, kind, 1, SOME)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", SEEDS)
def test_many_damaged_files(tmp_path: Path, kind: str) -> None:
    """Ten thousand damaged files of each, in a process whose end is seen too."""
    told, seed = tmp_path / "last", os.environ.get("CALQUE_FUZZ_SEED", "2")
    (tmp_path / "stage").mkdir()
    command = [sys.executable, "-m", __name__, str(tmp_path / "stage"), kind, seed, str(told)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr[-2000:]}\nthe file is {told}"


if __name__ == "__main__":
    survive(Stage(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3]), MANY, Path(sys.argv[4]))
