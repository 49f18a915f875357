"""MAX_FILES = 2 over 3 files, three runs, for each of force × purge × archive × transform."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from calque.loader.model.file_formats import CsvFormat
from calque.loader.model.plan import Transformation
from calque.loader.run.engines.spark import SparkEngine
from tests.loader.loader import Place
from tests.loader.world import ids, write_files

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
SELECT = Transformation(("CAST(`$1` AS BIGINT)", "upper(`$2`)"), ("id", "name"))


def name_of(kind: str, force: bool, ends: str, rows: str) -> str:
    return "-".join((kind, "force" if force else "once", ends, rows))


def options_of(place: Place, ends: str, request: pytest.FixtureRequest, transform: bool) -> Any:
    options: dict[str, Any] = {"purge": ends == "purge"}
    if ends == "archive":
        options["archive"] = str(place.folder / "old")
    if transform:
        options["engine"] = SparkEngine(request.getfixturevalue("spark"))
        options["transformation"] = SELECT
        options["format"] = CsvFormat(parse_header=True)
        options["schema"] = SCHEMA
    return options


CASES = list(product(("delta", "iceberg"), (False, True), ("stay", "purge", "archive")))


def _is_for_soak(kind: str, force: bool, ends: str) -> bool:
    """Half of what transforms rows: each of the others with one of the two kinds of table."""
    return (kind == "delta") == (force == (ends == "purge"))


@pytest.mark.parametrize(
    ("kind", "force", "ends", "transform"),
    [
        *(pytest.param(*case, False, id=name_of(*case, "plain")) for case in CASES),
        *(
            pytest.param(
                *case,
                True,
                id=name_of(*case, "select"),
                marks=pytest.mark.soak if _is_for_soak(*case) else (),
            )
            for case in CASES
        ),
    ],
)
def test_max_files_takes_the_next_ones(
    tmp_path: Path,
    kind: str,
    force: bool,
    ends: str,
    transform: bool,
    request: pytest.FixtureRequest,
) -> None:
    """2, 1, 0; FORCE over files that stay begins anew each time: 2, 2, 2, and says so."""
    place = Place(tmp_path, kind, str(tmp_path / "ledger.db"))
    expected = write_files(place.stage, 3)
    options = options_of(place, ends, request, transform)
    reports = [place.load(max_files=2, force=force, **options) for _ in range(3)]
    again = force and ends == "stay"
    assert [one.files_loaded for one in reports] == ([2, 2, 2] if again else [2, 1, 0])
    assert ids(place) == Counter(expected[:8] * 3 if again else expected)
    assert all(one.forced is force for one in reports)
    told = [any("begins at the first file" in note for note in one.notes) for one in reports]
    assert told == [again] * 3
    assert len(list(place.stage.iterdir())) == (3 if ends == "stay" else 0)
