"""A table that takes no commit: by rights that are missing, or for as long as it is away."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from deltalake import DeltaTable
from sqlalchemy import select

from calque.cli.watch import Watch
from calque.config import LedgerSettings, Secret, Settings
from calque.errors import CalqueError, PermissionDenied, ResourceExhausted, Unavailable
from calque.ledger import open_ledger
from calque.ledger.schema import loads
from calque.loader.commit import protocol
from calque.loader.commit.tables.errors import DELTA, map_error
from calque.loader.loader import Loader
from calque.loader.model.outcome import Status
from calque.loader.plan.failed_files import FailedFiles
from calque.loader.report import Report
from calque.loader.request.request import LoadRequest
from tests.loader.loader import LEASE, Place
from tests.loader.meddling import as_nobody
from tests.loader.world import assert_settled, write_files

LOGS = {"delta": "t/_delta_log", "iceberg": "default/t/metadata"}


@pytest.fixture
def nobodys(open_to_all: Place) -> Iterator[Place]:
    """A place of a user who has no rights but the usual ones."""
    with as_nobody():
        yield open_to_all


@pytest.fixture(params=sorted(LOGS))
def open_to_all(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place where that user may do everything, once what a load imports is imported."""
    warm = Place(tmp_path, request.param, str(tmp_path / "ledger.db"))
    write_files(warm.stage, 1)
    warm.load()  # imports what it needs, which nobody may not read
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Place(Path(folder), request.param, str(Path(folder) / "ledger.db"))


def test_a_log_that_may_not_be_written(nobodys: Place) -> None:
    """It is told at once, with the reason; nothing is loaded, and later each file once."""
    expected = write_files(nobodys.stage, 1)
    nobodys.load()
    expected += write_files(nobodys.stage, 1, first=1)
    log = nobodys.folder / "lake" / LOGS[nobodys.kind]
    log.chmod(0o555)
    try:
        with pytest.raises(PermissionDenied, match="ermission denied"):
            nobodys.load()
    finally:
        log.chmod(0o755)
    time.sleep(1.2 * LEASE)
    nobodys.load()
    assert_settled(nobodys, expected)


def test_a_catalog_that_may_not_be_written(nobodys: Place) -> None:
    """Its database's error is one of ours too; later each file counts once."""
    if nobodys.kind != "iceberg":
        pytest.skip("only Iceberg has one")
    expected = write_files(nobodys.stage, 1)
    nobodys.load()
    expected += write_files(nobodys.stage, 1, first=1)
    catalog = nobodys.folder / "lake" / "catalog.db"
    catalog.chmod(0o444)
    try:
        with pytest.raises(PermissionDenied, match="its catalog"):
            nobodys.load()
    finally:
        catalog.chmod(0o644)
    time.sleep(1.2 * LEASE)
    nobodys.load()
    assert_settled(nobodys, expected)


LOCAL = (
    "Generic LocalFileSystem error\n \x1b[31m↳\x1b[0m Unable to open file /t\n ↳ X (os error {})"
)
REMOTE = "Kernel error -> The operation lacked {} for path t/_delta_log/1.json\n ↳ GET http://k@h/"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(LOCAL.format(errno.EACCES)), PermissionDenied),
        (OSError(LOCAL.format(errno.EROFS)), PermissionDenied),
        (OSError(LOCAL.format(errno.ENOSPC)), ResourceExhausted),
        (OSError(LOCAL.format(errno.EIO)), Unavailable),
        (OSError(errno.ENOSPC, "No space left on device"), ResourceExhausted),
        (PermissionError("ACCESS_DENIED"), PermissionDenied),
        (OSError(REMOTE.format("the necessary privileges")), PermissionDenied),
        (OSError(REMOTE.format("valid authentication credentials")), PermissionDenied),
        (OSError("Generic S3 error\n ↳ Error performing PUT http://k@h/"), Unavailable),
    ],
)
def test_what_will_not_pass_is_told_from_what_may(error: OSError, kind: type[CalqueError]) -> None:
    """Only the latter is tried again; of a file the reason is told, of a service no address."""
    ours = map_error(error, DELTA, "x")
    assert type(ours) is kind
    assert "http" not in str(ours)
    assert ("(os error" in str(ours)) == ("(os error" in str(error))


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Commits fail as on a store that is away, and the second one meets Ctrl-C; call to end it."""
    calls = []

    def fail(*_: Any, **__: Any) -> None:
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        raise OSError("Generic S3 error")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", fail)
    return monkeypatch.undo


def test_ctrl_c_while_the_table_is_away(tmp_path: Path, away: Callable[[], None]) -> None:
    """The load ends soon, though nobody knows what became of it; the next one brings it home."""
    place = Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
    expected = write_files(place.stage, 1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(protocol, "PATIENCE_OF_STOPPED", 0.5)
        with pytest.raises(KeyboardInterrupt):
            place.load()
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        assert list(connection.execute(select(loads.c.state)).scalars()) == ["PREPARED"]
    away()
    time.sleep(1.2 * LEASE)
    place.load()
    assert_settled(place, expected)


def test_a_watch_over_a_table_that_may_not_be_written(
    open_to_all: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """It waits, tells that once, and what came meanwhile is in when it may be written again."""
    place = open_to_all
    log = place.folder / "lake" / LOGS[place.kind]
    request = LoadRequest(stage=place.source, into=place.table, lease_seconds=LEASE)
    settings = Settings(ledger=LedgerSettings(url=Secret(place.ledger)))
    with as_nobody():
        expected = write_files(place.stage, 1)
        loader = Loader(settings=settings, spark="local")
    looks: list[Report | None] = []

    def look(request: LoadRequest, failed: FailedFiles) -> Report:
        if looks and looks[-1] is not None and looks[-1].count(Status.SKIPPED_LOADED) == 2:
            raise KeyboardInterrupt
        with as_nobody():
            if len(looks) == 1:
                expected.extend(write_files(place.stage, 1, first=1))
            if looks:
                log.chmod(0o755 if looks.count(None) > 1 else 0o555)
            looks.append(None)
            looks[-1] = report = loader.run(request, None, failed)
        return report

    with loader, pytest.raises(typer.Exit):
        Watch(loader, request, 0.1, json=False).run(look)
    assert looks.count(None) == 2, "it could not be written, nor the load that was left"
    told = capsys.readouterr().err.count("trying again")
    assert told == 1 or place.kind == "iceberg"  # which fails at another file the second time
    assert_settled(place, expected)
