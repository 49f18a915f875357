"""Traces of a command, where the variables of OpenTelemetry ask for them.

``OTEL_EXPORTER_OTLP_ENDPOINT``, or ``OTEL_TRACES_EXPORTER`` (``otlp``, ``console``), and what else
the SDK knows; ``TRACEPARENT`` names the span of whoever started the command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

from calque import tracing
from calque.cli.output import say

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_EXPORTERS = ("otlp", "console")


def are_wanted(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks for traces."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    chosen = environ.get("OTEL_TRACES_EXPORTER", "")
    return chosen != "none" and bool(chosen or any(environ.get(name) for name in _ENDPOINTS))


@contextmanager
def traced(command: str) -> Iterator[None]:
    """The span of a whole command; its exporter is flushed when the process ends."""
    exporter = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    if exporter not in _EXPORTERS:
        say(f"warning: no traces: OTEL_TRACES_EXPORTER knows otlp, console, none; not {exporter!r}")
        yield
        return
    try:
        _set_up(exporter)
    except ImportError:
        say("warning: no traces: OTEL_… is set, and the extra 'otel' is not installed")
        say("  Install it with: pip install 'calque[otel]'")
        yield
        return
    context = import_module("opentelemetry.context")
    propagator = import_module("opentelemetry.trace.propagation.tracecontext")
    carrier = {"traceparent": os.environ.get("TRACEPARENT", "")}
    found = propagator.TraceContextTextMapPropagator().extract(carrier)
    token = context.attach(found)
    try:
        with tracing.span(command):
            yield
    finally:
        context.detach(token)


def _set_up(exporter: str) -> None:
    trace = import_module("opentelemetry.trace")
    export = import_module("opentelemetry.sdk.trace.export")
    sdk = import_module("opentelemetry.sdk.trace")
    resources = import_module("opentelemetry.sdk.resources")
    if exporter == "console":
        # Results are on standard output.
        made = export.ConsoleSpanExporter(out=sys.stderr)
    else:
        otlp = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        made = otlp.OTLPSpanExporter()
    name = os.environ.get("OTEL_SERVICE_NAME") or "calque"
    provider = sdk.TracerProvider(resource=resources.Resource.create({"service.name": name}))
    provider.add_span_processor(export.BatchSpanProcessor(made))
    trace.set_tracer_provider(provider)
