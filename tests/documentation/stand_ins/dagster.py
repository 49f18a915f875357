"""The names of Dagster that a page uses, so that what it calls of calque is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class MaterializeResult:
    metadata: dict[str, Any]


def asset(function: Callable[[], MaterializeResult]) -> Callable[[], MaterializeResult]:
    return function
