"""A watch and files that nobody meant for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from sqlalchemy import func, select

from calque.cli.watch import Watch
from calque.config import LedgerSettings, Secret, Settings
from calque.errors import LoadAborted
from calque.ledger import open_ledger
from calque.ledger.schema import loads
from calque.loader.loader import Loader
from calque.loader.model.outcome import Status
from calque.loader.plan.failed_files import FailedFiles
from calque.loader.report import Report
from calque.loader.request.request import LoadRequest
from calque.loader.run.engines import choose_engine
from calque.loader.run_request import RequestRun
from tests.cli.test_watch import watching, write
from tests.frozen import wake_with


@pytest.fixture
def look(tmp_path: Path) -> Iterator[Callable[[], Report]]:
    """One look of a watch after the other, as ``calque load --watch`` takes them."""
    (tmp_path / "in").mkdir()
    request = LoadRequest(stage=f"{tmp_path}/in/", into=str(tmp_path / "t"))
    failed = FailedFiles()
    with open_ledger(str(tmp_path / "ledger.db")) as ledger:

        def take_a_look() -> Report:
            engine = choose_engine()
            run = RequestRun(request, Settings(), ledger, lambda _size, _sql: engine, None, failed)
            try:
                report = run.run()
            except LoadAborted as error:
                if not failed.note(error.report, error):
                    raise  # no file is blamed: such a watch is stopped for good
                return take_a_look()
            failed.note(report)
            return report

        yield take_a_look


def statuses(report: Report) -> dict[str, str]:
    return {row.name: row.status for row in report.rows()}


def test_files_of_other_formats(tmp_path: Path, look: Callable[[], Report]) -> None:
    """A file of no format fails alone, one of another format waits for the next look."""
    stage = tmp_path / "in"
    (stage / "a.csv").write_text("id,n\n1,a\n")
    (stage / "b.readme").write_text("hello")
    pq.write_table(pa.table({"id": [2], "n": ["b"]}), stage / "c.parquet")
    (stage / "d.csv").write_text("id,n\n3,c\n")
    assert statuses(look()) == {"a.csv": Status.LOADED, "d.csv": Status.LOADED}
    second = statuses(look())
    assert second["c.parquet"] == Status.LOADED
    assert "b.readme" not in second
    assert look().files_loaded == 0


def test_a_name_that_is_no_utf8(tmp_path: Path, look: Callable[[], Report]) -> None:
    """It cannot be loaded, and keeps nobody else from being so."""
    stage = tmp_path / "in"
    (stage / "a.csv").write_text("id,n\n1,a\n")
    (stage / os.fsdecode(b"b\xff.csv")).write_text("id,n\n2,b\n")
    assert statuses(look()) == {"a.csv": Status.LOADED}
    (stage / "c.csv").write_text("id,n\n3,c\n")
    assert statuses(look())["c.csv"] == Status.LOADED


def test_a_table_that_is_away(tmp_path: Path) -> None:
    """It is waited for: a new one in its place would hide it when it comes back."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,n\n1,a\n")
    table, away = tmp_path / "t", tmp_path / "away"
    with watching(tmp_path) as watch:
        watch.until(lambda: watch.rows() == 1 and "LOADED" in watch.said)  # its notes are there
        table.rename(away)
        watch.until(lambda: "trying again" in watch.said)
        assert not table.exists()
        away.rename(table)
        (tmp_path / "in" / "b.csv").write_text("id,n\n2,b\n")
        watch.until(lambda: watch.rows() == 2)
        assert watch.stop() == 0


@pytest.mark.parametrize("policy", ["abort", "skip_file"])
def test_a_stage_that_is_away_for_a_moment_of_a_load(tmp_path: Path, policy: str) -> None:
    """Its files vanish while they are read and come back as they were: they are loaded then."""
    stage, away = tmp_path / "in", tmp_path / "away"
    stage.mkdir()
    (stage / "a.csv").write_text("id,n\n1,a\n")
    fault = "write.before@2:pause=60"
    with watching(tmp_path, "--on-error", policy, fault=fault) as watch:
        watch.until(lambda: watch.rows() == 1)
        write(tmp_path, "b.csv", "id,n\n2,b\n")
        watch.until(watch.is_frozen)
        stage.rename(away)
        wake_with(watch.process.pid, signal.SIGCONT)
        watch.until(lambda: "vanished" in watch.said)
        away.rename(stage)
        watch.until(lambda: watch.rows() == 2)
        watch.stop()


def test_the_same_trouble_is_told_once(tmp_path: Path) -> None:
    """However often it is met, and though each load writes under another name."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,n\n1,a\n")
    sidecars, away = tmp_path / "t" / "_calque", tmp_path / "away"

    def tries() -> int:
        with open_ledger(str(tmp_path / "ledger.db")) as ledger, ledger.read() as connection:
            query = select(func.count()).where(loads.c.state == "ABORTED")
            return int(connection.execute(query).scalar_one())

    with watching(tmp_path) as watch:
        watch.until(lambda: watch.rows() == 1)
        sidecars.rename(away)
        sidecars.touch()  # a file in the place of the folder: nobody can write into it
        (tmp_path / "in" / "b.csv").write_text("id,n\n2,b\n")
        watch.until(lambda: tries() >= 3)
        assert watch.said.count("trying again") == 1, watch.said
        sidecars.unlink()
        away.rename(sidecars)
        watch.until(lambda: watch.rows() == 2)
        assert watch.stop() == 0


def test_a_bad_file_that_grows_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at once in a cycle, and not for as long as it changes."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,n\n1,a\n2,b,c\n")
    settings = Settings(ledger=LedgerSettings(url=Secret(str(tmp_path / "ledger.db"))))
    looks = []

    def stop(_seconds: float) -> None:
        raise KeyboardInterrupt

    with Loader(settings=settings, spark="local") as loader:

        def look(request: LoadRequest, failed: FailedFiles) -> Report:
            looks.append(request)
            assert len(looks) < 5
            with (tmp_path / "in" / "a.csv").open("a") as file:
                file.write("3,d\n")
            return loader.run(request, None, failed)

        request = LoadRequest(stage=f"{tmp_path}/in/", into=str(tmp_path / "t"))
        monkeypatch.setattr("calque.cli.watch.time.sleep", stop)
        with pytest.raises(typer.Exit):
            Watch(loader, request, 10.0, json=False).run(look)
    assert len(looks) == 2
