"""Tracing: a span of OpenTelemetry for every attempt of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from calque import tracing
from calque.operator.layers.chain import Call

T = TypeVar("T")


class Tracing:
    """A layer that opens a span named by the verb. Stand it innermost to see every attempt."""

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        with tracing.span(f"request.{call.verb}", path=call.path):
            return proceed(call)
