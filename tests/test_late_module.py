"""Modules that are imported when something of them is first asked for."""

from __future__ import annotations

import sys

import pytest

from calque.late_module import LateModule


def test_it_is_imported_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Naming it imports nothing; using it gives what the module has, then and later."""
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    late = LateModule("colorsys")
    assert "colorsys" not in sys.modules
    assert late.ONE_THIRD == 1 / 3
    monkeypatch.setattr(sys.modules["colorsys"], "ONE_THIRD", "changed")
    assert late.ONE_THIRD == "changed"


def test_what_is_missing_is_told_as_always() -> None:
    """A name that the module has not, and a module that is not there."""
    with pytest.raises(AttributeError, match="no_such_name"):
        assert LateModule("json").no_such_name
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        assert LateModule("no_such_module").something
