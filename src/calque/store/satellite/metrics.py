"""What a satellite counts, in the format of Prometheus."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

COPY_COUNTERS = {
    "BeginCopyObject": "req_copy_object_begin",
    "FinishCopyObject": "req_copy_object_finish",
}


class Metrics:
    """The counters of one satellite, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = {
            call: Counter(name, f"Calls of {call}", registry=self.registry)
            for call, name in COPY_COUNTERS.items()
        }
        self._copies = Counter("req_copy_object", "Copies that were made", registry=self.registry)
        self._seconds = Histogram(
            "metainfo_call_seconds", "Time of a call", ["call"], registry=self.registry
        )
        self._errors = Counter(
            "metainfo_errors", "Calls that failed", ["call", "kind"], registry=self.registry
        )
        # A labelled child is looked up once, not at every call.
        self._timers: dict[str, Any] = {}

    def count_call(self, call: str, seconds: float) -> None:
        """Count a call and its time."""
        timer = self._timers.get(call)
        if timer is None:
            timer = self._timers[call] = self._seconds.labels(call)
        timer.observe(seconds)
        if call in self._requests:
            self._requests[call].inc()

    def count_failure(self, call: str, error: BaseException) -> None:
        """Count a failure by its kind."""
        self._errors.labels(call, type(error).__name__).inc()

    def count_copy(self) -> None:
        """Count a copy that was made: no repeat of a Finish, none of an object onto itself."""
        self._copies.inc()

    def serve(self, port: int, address: str = "127.0.0.1") -> tuple[Any, Any]:
        """Answer ``GET /metrics`` over HTTP; returns the server and its thread.

        End it with ``server.shutdown()`` and ``server.server_close()``.
        """
        return start_http_server(port, addr=address, registry=self.registry)
