"""A flow is run when it is called, and its tasks in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def dag(**options: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    return lambda flow: flow


def task(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    return function if function is not None else lambda given: given
