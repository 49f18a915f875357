"""The extra of the console, where it is not installed."""

from __future__ import annotations

import sys

import pytest

from calque.console.required_packages import require_console_extra
from calque.errors import MissingExtra


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which extra is missing and how to install it."""
    require_console_extra()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"calque\[console\]"):
        require_console_extra()
