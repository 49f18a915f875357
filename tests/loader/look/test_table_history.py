"""The loads of a table by its name, before and after there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

import calque
from calque.config import load_settings
from calque.errors import LoadAborted, NotFound
from calque.loader.look.table_history import loads_of_table


def test_loads_before_there_is_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made by a look; a load that failed is found by the place that it was meant for."""
    ledger, table = tmp_path / "ledger.db", str(tmp_path / "lake" / "t")
    monkeypatch.setenv("CALQUE_LEDGER_URL", str(ledger))
    settings = load_settings()
    with pytest.raises(NotFound):
        loads_of_table(table, settings)
    assert not ledger.exists()
    (tmp_path / "a.csv").write_text("id,name\n1,x\n2\n")
    with pytest.raises(LoadAborted):
        calque.load(str(tmp_path / "a.csv"), into=table)
    assert [one.state for one in loads_of_table(table, settings)] == ["ABORTED"]
    calque.load(str(tmp_path / "a.csv"), into=table, on_error="continue")
    assert [one.state for one in loads_of_table(table, settings)] == ["COMMITTED", "ABORTED"]
