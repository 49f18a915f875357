"""Bad rows and bad files: every policy, true counts, errors that can be asked for again."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import func, select

from calque.errors import CalqueError, LoadAborted
from calque.ledger import open_ledger
from calque.ledger.history import errors_of, find_load, history, results_of
from calque.ledger.schema import claims, files, loads
from calque.loader.model.outcome import Status
from calque.loader.request.option_values import on_error
from calque.loader.request.request import Validation
from tests.loader.loader import Place
from tests.loader.world import assert_settled, files_on_disk, ids, write_files


def bad_file(place: Place, name: str = "bad.csv", bad: int = 2) -> list[int]:
    """Two good rows around some whose id is no number; the good ids."""
    lines = ["id,name", "9001,ok", *(f"x{number},bad" for number in range(bad)), "9002,ok"]
    (place.stage / name).write_text("\n".join(lines) + "\n")
    return [9001, 9002]


@pytest.fixture
def started(simple: Place) -> tuple[Place, list[int]]:
    """A table with one good file in it, so that its types are settled."""
    expected = write_files(simple.stage, 1)
    simple.load()
    return simple, expected


def counts(place: Place) -> tuple[int, int]:
    """Records and claims in the ledger."""
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        recorded = connection.execute(select(func.count()).select_from(files)).scalar_one()
        claimed = connection.execute(select(func.count()).select_from(claims)).scalar_one()
    return recorded, claimed


def test_abort_changes_nothing(started: tuple[Place, list[int]]) -> None:
    """ABORT_STATEMENT: table, records and disk stay as they were; the report says where."""
    place, expected = started
    bad_file(place)
    write_files(place.stage, 1, first=5)
    disk = files_on_disk(place)
    with pytest.raises(LoadAborted, match="line 3") as caught:
        place.load()
    assert files_on_disk(place) == disk
    assert counts(place) == (1, 0)
    assert_settled(place, expected)
    report = caught.value.report
    assert report is not None
    assert report.rows_loaded == 0
    told = {row.name: row for row in report.files}
    assert told["bad.csv"].status == Status.FAILED
    assert told["bad.csv"].errors >= 1
    assert told["f00005.csv"].rows_loaded == 0


def test_abort_n_tolerates_fewer(started: tuple[Place, list[int]]) -> None:
    """ABORT_n loads while errors stay below n, and gives up when they reach it."""
    place, expected = started
    good = bad_file(place, bad=2)
    with pytest.raises(LoadAborted):
        place.load(on_error=on_error("abort_2"))
    report = place.load(on_error=on_error("abort_3"))
    assert report.errors == 2
    assert ids(place) == Counter(expected + good)


def test_continue_loads_the_good_rows(started: tuple[Place, list[int]]) -> None:
    """CONTINUE leaves out bad rows only; the file is PARTIALLY_LOADED with true counts."""
    place, expected = started
    good = bad_file(place)
    report = place.load(on_error=on_error("continue"))
    row = next(row for row in report.files if row.name == "bad.csv")
    assert (row.status, row.rows_parsed, row.rows_loaded, row.errors) == (
        Status.PARTIALLY_LOADED,
        4,
        2,
        2,
    )
    assert not report.complete
    assert_settled(place, expected + good)
    assert place.load().count(Status.SKIPPED_LOADED) == 2


def test_skip_file_leaves_the_file_out(started: tuple[Place, list[int]]) -> None:
    """SKIP_FILE leaves a bad file out whole and tries it again next time."""
    place, expected = started
    bad_file(place)
    new = write_files(place.stage, 1, first=5)
    report = place.load(on_error=on_error("skip_file"))
    assert report.files.counts == {"FAILED": 1, "LOADED": 1, "SKIPPED_LOADED": 1}
    assert_settled(place, expected + new)
    good = bad_file(place, bad=0)
    assert place.load(on_error=on_error("skip_file")).files_loaded == 1
    assert_settled(place, expected + new + good)


def test_skip_file_with_a_limit(started: tuple[Place, list[int]]) -> None:
    """SKIP_FILE_n and SKIP_FILE_n% leave out bad rows below the limit, the file at it."""
    place, _ = started
    bad_file(place, "two.csv", bad=2)
    assert place.load(on_error=on_error("skip_file_2")).count(Status.FAILED) == 1
    assert place.load(on_error=on_error("skip_file_40%")).count(Status.FAILED) == 1
    assert place.load(on_error=on_error("skip_file_3")).count(Status.PARTIALLY_LOADED) == 1


def test_only_bad_files(started: tuple[Place, list[int]]) -> None:
    """When no file can be loaded the table gets no commit, and the report says it failed."""
    place, expected = started
    bad_file(place)
    report = place.load(on_error=on_error("skip_file"))
    assert report.failed
    assert report.table_version is None
    assert_settled(place, expected)


def test_errors_are_kept(started: tuple[Place, list[int]]) -> None:
    """Each rejected row can be asked for again by load id: place, value, reason, raw line."""
    place, _ = started
    bad_file(place)
    report = place.load(on_error=on_error("continue"))
    with open_ledger(place.ledger) as ledger:
        kept = list(errors_of(ledger, report.load_ids[0]))
    assert [one["line"] for one in kept] == [3, 4]
    first = kept[0]
    assert first["file"].endswith("/bad.csv")
    assert (first["record"], first["column"], first["value"]) == (2, "id", "x0")
    assert first["target_type"] == "BIGINT"
    assert first["raw"] == "x0,bad"
    assert first["code"]
    assert first["message"]


def test_errors_of_an_aborted_load_are_kept(started: tuple[Place, list[int]]) -> None:
    """A load that was given up is in the history with its errors."""
    place, _ = started
    bad_file(place)
    with pytest.raises(LoadAborted):
        place.load()
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        aborted = connection.execute(select(loads.c.load_id).where(loads.c.state == "ABORTED"))
        load_id = aborted.scalar_one()
    with open_ledger(place.ledger) as ledger:
        assert find_load(ledger, load_id).errors >= 1
        assert list(errors_of(ledger, load_id))


def test_history(place: Place) -> None:
    """The history of a table has rows, errors, bytes, times, who and the statement."""
    write_files(place.stage, 2)
    report = place.load()
    place.load(force=True)
    with open_ledger(place.ledger) as ledger:
        statement = place.statement()
        key = statement.lake.key(statement.lake.open())
        told = history(ledger, key)
        rows = list(results_of(ledger, report.load_ids[0]))
    assert [one.state for one in told] == ["COMMITTED", "COMMITTED"]
    oldest = told[-1]
    assert oldest.load_id == report.load_ids[0]
    assert (oldest.files, oldest.rows, oldest.errors) == (2, 8, 0)
    assert oldest.bytes == sum(path.stat().st_size for path in place.stage.iterdir())
    assert oldest.started_at <= oldest.finished_at  # type: ignore[operator]
    assert oldest.who
    assert "COPY INTO" in (oldest.statement or "")
    assert [row.rows_loaded for row in rows] == [4, 4]


def test_validation_returns_errors_and_loads_nothing(started: tuple[Place, list[int]]) -> None:
    """VALIDATION_MODE = RETURN_ERRORS: every error, no commit, no record."""
    place, expected = started
    bad_file(place)
    before = counts(place)
    report = place.load(validation=Validation())
    assert [error["line"] for error in report.row_errors] == [3, 4]
    assert counts(place) == before
    assert report.rows_loaded == 0
    assert_settled(place, expected)


def test_validation_returns_rows(started: tuple[Place, list[int]]) -> None:
    """VALIDATION_MODE = RETURN_n_ROWS: the first rows as they would be loaded."""
    place, expected = started
    write_files(place.stage, 1, first=7)
    report = place.load(validation=Validation(2))
    assert report.sample is not None
    assert report.sample.column("id").to_pylist() == [700, 701]
    assert_settled(place, expected)


def test_dry_run_changes_nothing(simple: Place) -> None:
    """A dry run plans and makes neither table nor record."""
    write_files(simple.stage, 3)
    report = simple.load(dry_run=True)
    assert report.count(Status.PLANNED) == 3
    assert report.plan is not None
    assert sum(1 for _ in report.plan.files) == 3
    assert not (simple.folder / "lake" / "t").exists()
    assert counts(simple) == (0, 0)


def test_return_failed_only(started: tuple[Place, list[int]]) -> None:
    """RETURN_FAILED_ONLY shows only what did not go well; the counts stay whole."""
    place, _ = started
    bad_file(place)
    report = place.load(on_error=on_error("skip_file"), return_failed_only=True)
    assert [row.name for row in report.rows()] == ["bad.csv"]
    assert len(report.files) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"\x1f\x8b\x08\x00garbage",
        "id,name\n1,a\n".encode("utf-16"),
        b"PAR1 this is no parquet",
        b"id;name\n1;a\n",
        b"id,name\n1,a,b\n",
    ],
    ids=["truncated gz", "utf-16", "no parquet", "wrong delimiter", "a column too many"],
)
def test_bad_files_have_clear_errors(started: tuple[Place, list[int]], body: bytes) -> None:
    """A file that is not what it says is an error that names it; nothing is changed."""
    place, expected = started
    name = {b"\x1f": "x.csv.gz", b"P": "x.parquet"}.get(body[:1], "x.csv")
    (place.stage / name).write_bytes(body)
    before = counts(place)
    with pytest.raises(CalqueError, match="x"):
        place.load(files=(name,))
    assert counts(place) == before
    assert_settled(place, expected)
