"""What the gateway counts, beside the counters of the satellite. No label is a user's name."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Histogram

NO_VERB = "none"
"""Of a request that was refused before anybody knew what it asks for."""


class S3Metrics:
    """Requests by verb and status, and the seconds until an answer begins."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "s3_requests", "Requests of S3", ["verb", "status"], registry=registry
        )
        self._seconds = Histogram(
            "s3_seconds", "Time until the answer begins", ["verb"], registry=registry
        )
        # Looked up once and not at every request; verbs and statuses are few.
        self._counters: dict[tuple[str, int], Any] = {}
        self._timers: dict[str, Any] = {}

    def count(self, verb: str, status: int, seconds: float) -> None:
        counter = self._counters.get((verb, status))
        if counter is None:
            counter = self._counters[verb, status] = self._requests.labels(verb, str(status))
        timer = self._timers.get(verb)
        if timer is None:
            timer = self._timers[verb] = self._seconds.labels(verb)
        counter.inc()
        timer.observe(seconds)


_KNOWN: WeakKeyDictionary[CollectorRegistry, S3Metrics] = WeakKeyDictionary()


def metrics_of(registry: CollectorRegistry) -> S3Metrics:
    """The counters in a registry, which takes each name once however many gateways there are."""
    found = _KNOWN.get(registry)
    if found is None:
        found = _KNOWN[registry] = S3Metrics(registry)
    return found
