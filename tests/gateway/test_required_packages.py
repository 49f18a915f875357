"""The extra of the gateway, where it is not installed."""

from __future__ import annotations

import sys

import pytest

from calque.errors import MissingExtra
from calque.gateway.required_packages import require_gateway_extra


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which extra is missing and how to install it."""
    require_gateway_extra()
    monkeypatch.setitem(sys.modules, "httptools", None)
    with pytest.raises(MissingExtra, match=r"calque\[gateway\]"):
        require_gateway_extra()
