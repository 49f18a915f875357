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


def add_layers(own: tuple[Layer, ...], more: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The layers of an operator with those of a run around its requests; outermost first.

    Kinds that it has stay its own. The others stand within its retry, so that they see every
    attempt: a pace that is told of the last refusal alone would not slow down. A retry that nobody
    chose is as patient as that of the run.
    """
    patient = next((each for each in more if isinstance(each, Retry)), Retry())
    kept = [patient if each == Retry() else each for each in own]
    kinds = {type(each) for each in own}
    missing = [each for each in more if type(each) not in kinds]
    within = next((place for place, each in enumerate(kept, 1) if isinstance(each, Retry)), 0)
    return (*kept[:within], *missing, *kept[within:])
