"""Spans of OpenTelemetry, where somebody has set it up; else nothing, at the cost of one look.

Whoever wants traces imports the SDK (``calque[otel]``) and sets a provider: a program by itself,
the command line by the variables ``OTEL_…`` (``calque.cli.traces``). Nothing is imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from calque._version import __version__

T = TypeVar("T")
_NOTHING: AbstractContextManager[Any] = nullcontext()
_SDK = "opentelemetry.sdk.trace"


def is_on() -> bool:
    """Whether spans may be looked at: the SDK was imported by somebody."""
    return _SDK in sys.modules


def span(name: str, **attributes: str | int | float | bool) -> AbstractContextManager[Any]:
    """A span for the length of a ``with`` block, below the one that is open in this thread.

    An error that ends the block is noted in it. Attributes are numbers and what users named; never
    a secret.
    """
    if _SDK not in sys.modules:
        return _NOTHING
    tracer = sys.modules["opentelemetry.trace"].get_tracer("calque", __version__)
    told = {f"calque.{key}": _as_text(value) for key, value in attributes.items()}
    opened: AbstractContextManager[Any] = tracer.start_as_current_span(
        f"calque.{name}", attributes=told
    )
    return opened


def enter_here() -> Callable[[], None] | None:
    """What a new thread calls first, so that its spans lie below the one that is open here."""
    if _SDK not in sys.modules:
        return None
    context = sys.modules["opentelemetry.context"]
    here = context.get_current()

    def enter() -> None:
        context.attach(here)

    return enter


def carry(work: Callable[[], T]) -> Callable[[], T]:
    """Work for another thread, whose spans lie below the one that is open here."""
    enter = enter_here()
    if enter is None:
        return work

    def carried() -> T:
        enter()
        return work()

    return carried


def _as_text(value: str | int | float | bool) -> str | int | float | bool:
    """Names of files may be any bytes; exporters take text."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
