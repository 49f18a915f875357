"""The ledger that the configuration names."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.config import load_settings
from calque.ledger.configured import ledger_of


def test_by_default_a_file_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a word of it the ledger is the user's own file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("CALQUE_LEDGER_URL", raising=False)
    with ledger_of(load_settings()) as ledger:
        assert ledger.where.endswith(str(tmp_path / "calque" / "ledger.db"))


def test_a_url_goes_first(tmp_path: Path) -> None:
    """What is configured is opened, with its tenant and its life of records."""
    flags: dict[str, object] = {"ledger.url": str(tmp_path / "own.db"), "ledger.expire_days": 2}
    with ledger_of(load_settings(flags=flags)) as ledger:
        assert (tmp_path / "own.db").exists()
        assert ledger.life == 2 * 86_400 * 1_000_000
