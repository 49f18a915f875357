"""Damaged files of every format: rows, refused rows or a refused file, and never anything else."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from calque.errors import CalqueError
from calque.loader.model.file_formats import CsvFormat, FormatOptions
from calque.loader.run.formats import ReadSpec, open_reader
from calque.loader.run.formats.registry import CRASH_PRONE
from calque.loader.run.formats.registry import infer_schema as infer_file
from calque.loader.run.infer import infer_schema
from tests.loader.run.formats.conftest import Stage
from tests.loader.run.formats.mutants import SCHEMA, SEEDS, mutant

SOME, MANY = 150, 10_000


def survive(stage: Stage, kind: str, seed: int, numbers: range, told: Path | None = None) -> None:
    """Infer and read every mutant; what is raised is ours, and every record is accounted for."""
    name, format, make = SEEDS[kind]
    sound = make()
    for number in numbers:
        if told is not None:  # a library that ends the process leaves the culprit's number here
            told.write_text(str(number))
        file = stage.staged(name, mutant(sound, random.Random(f"{seed}/{number}")))
        with suppress(CalqueError):
            if format.kind in CRASH_PRONE:  # here, since this process is one of its own already
                infer_file(stage.source(file), format)
            else:
                infer_schema([file], format)
        with suppress(CalqueError):
            for parsed in open_reader(stage.source(file), spec_of(format, SCHEMA)).read():
                assert parsed.rows.num_rows + len(parsed.rejected) == parsed.records
                parsed.rows.validate(full=True)


def survive_apart(folder: Path, kind: str, seed: int, count: int) -> None:
    """The same in a process of its own; a crash is allowed to the formats that run apart anyway."""
    stage, told = folder / "stage", folder / "last"
    stage.mkdir(exist_ok=True)
    first = 0
    while first < count:
        words = [str(stage), kind, str(seed), str(first), str(count), str(told)]
        done = subprocess.run([sys.executable, "-m", __name__, *words], capture_output=True)
        if done.returncode == 0:
            return
        first = int(told.read_text()) + 1
        crash = done.returncode < 0 and SEEDS[kind][1].kind in CRASH_PRONE
        assert crash, f"{kind} {first - 1} of {seed}: {done.stderr.decode()[-2000:]}"


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
    if SEEDS[kind][1].kind in CRASH_PRONE:
        survive_apart(stage.root.parent, kind, 1, SOME)
    else:
        survive(stage, kind, 1, range(SOME))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", SEEDS)
def test_many_damaged_files(tmp_path: Path, kind: str) -> None:
    """Ten thousand damaged files of each, in a process whose end is seen too."""
    survive_apart(tmp_path, kind, int(os.environ.get("CALQUE_FUZZ_SEED", "2")), MANY)


if __name__ == "__main__":
    where, kind, seed, first, count, told = sys.argv[1:]
    numbers = range(int(first), int(count))
    survive(Stage(Path(where)), kind, int(seed), numbers, Path(told))
