"""Progress as people see it: phases by name, a line in a notebook, one way to write numbers."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from rich.console import Console

from calque.cli import output
from calque.loader.api import load
from calque.loader.model.load_progress import LoadProgress
from calque.loader.progress_bar import describe_progress
from calque.values import size_text
from tests.loader.loader import Place
from tests.loader.plan.test_dialect import settings, stage
from tests.notebook_stand_in import run_in_notebook


def test_phases_have_names(delta: Place) -> None:
    """Whoever waits is told for what."""
    stage(delta, "id,name\n1,a\n")
    told: list[LoadProgress] = []
    load(delta.source, delta.table, settings=settings(delta), spark="local", progress=told.append)
    phases = list(dict.fromkeys(one.phase for one in told))
    assert phases[:3] == ["opening the table", "listing and comparing", "finding the columns"]
    assert phases[3:] == ["loading", "committing"]
    assert describe_progress(LoadProgress(1, 2, 3000, 1024, 2048)) == (
        "loading: 1 of 2 files, 3,000 rows, 1.0 KiB of 2.0 KiB"
    )
    assert describe_progress(LoadProgress(phase="starting Spark")) == "starting Spark"


@pytest.mark.parametrize("options", ["{}", "{'progress': True}", "{'progress': False}"])
def test_a_notebook_shows_a_line(delta: Place, tmp_path: Path, options: str) -> None:
    """Without being asked, and not where it is not wanted; nothing of it stays in the cell."""
    stage(delta, "id,name\n1,a\n")
    shown = run_in_notebook(
        f"calque.load(sys.argv[1], sys.argv[2], **{options})",
        delta.source,
        delta.table,
        env={"CALQUE_LEDGER_URL": delta.ledger, "HOME": str(tmp_path)},
    )
    if "False" in options:
        assert shown == []
    else:
        assert shown[0] == "<code>opening the table</code>"
        assert shown[-1] == ""


def test_a_bar_that_is_asked_for_is_no_function(
    delta: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """``progress=True`` outside of a notebook: a bar on a terminal, silence elsewhere."""
    stage(delta, "id,name\n1,a\n")
    load(delta.source, delta.table, settings=settings(delta), spark="local", progress=True)
    assert capsys.readouterr().err == ""


def test_sizes_and_times_read_the_same() -> None:
    """One way to write each; a time is told in UTC whatever zone it came in."""
    assert [size_text(n) for n in (0, 1023, 1024, 1024**2 - 1, 5 * 1024**4)] == [
        "0 B", "1023 B", "1.0 KiB", "1.0 MiB", "5.0 TiB",
    ]  # fmt: skip
    there = datetime(2026, 11, 16, 5, 0, 0, 999, timezone(timedelta(hours=2)))
    assert output.moment(there) == "2026-11-16 03:00:00Z"
    assert output.moment(there.replace(tzinfo=None)) == "2026-11-16 05:00:00"


def test_ids_stand_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However narrow the terminal: an id is there to be copied."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(output, "console", lambda: Console(width=40, highlight=False))
    load_id = "20261116T031212-a5acab40"
    output.table(("load", "what"), [(load_id, "COPY INTO 'somewhere/far/away' FROM 'in/'")])
    assert load_id in capsys.readouterr().out
