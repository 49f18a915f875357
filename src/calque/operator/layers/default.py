"""The layers that an operator gets unless it is told otherwise, composed in one place."""

from __future__ import annotations

from calque import tracing
from calque.operator.layers.chain import Layer
from calque.operator.layers.limit import ConcurrencyLimit
from calque.operator.layers.metrics import Metrics
from calque.operator.layers.pace import Pace
from calque.operator.layers.retry import Retry
from calque.operator.layers.timeout import Timeout
from calque.operator.layers.tracing import Tracing

_REFUSALS = 16


def default_layers(
    *,
    retry: Retry | None = None,
    timeout: Timeout | None = None,
    limit: ConcurrencyLimit | None = None,
    metrics: Metrics | None = None,
    pace: Pace | None = None,
) -> tuple[Layer, ...]:
    """Retry and timeout always, a pace, a shared limit and metrics where given; outermost first.

    Retry stands outside of the limit: who waits for the next attempt takes no place from others.
    The timeout stands inside of the limit: waiting for a place is not the server's fault. Metrics
    stand innermost and see every attempt; so do traces, where OpenTelemetry is set up.
    """
    # With a pace we slow down when the server says so. What it still refuses is bad luck, and may
    # be tried more often.
    layers: list[Layer] = [retry or Retry(refusals=None if pace is None else _REFUSALS)]
    if pace is not None:
        layers.append(pace)  # within the retry: a repeat waits for its turn too
    if limit is not None:
        layers.append(limit)
    layers.append(timeout or Timeout())
    if metrics is not None:
        layers.append(metrics)
    if tracing.is_on():
        layers.append(Tracing())
    return tuple(layers)
