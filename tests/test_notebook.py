"""The line under a cell, as a notebook gets it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from calque.notebook import is_notebook, notebook_line


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook shows one after the other; only the kernel of one has ``kernel``."""
    texts: list[str] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.HTML = str  # type: ignore[attr-defined]
    line = SimpleNamespace(update=texts.append)
    display.display = lambda html, display_id: line  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return texts


def test_a_line_changes_and_goes(shown: list[str]) -> None:
    """What is the same is not sent again; names are text, whoever chose them."""
    assert is_notebook()
    with notebook_line() as update:
        for text in ("one", "one", "<b>"):
            update(text)
    assert shown == ["<code>one</code>", "<code>&lt;b&gt;</code>", ""]


def test_elsewhere() -> None:
    """A plain process is none, nor is a shell of IPython in a terminal."""
    assert not is_notebook()
