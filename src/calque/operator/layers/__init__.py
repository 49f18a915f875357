"""Layers around every request of a service: retry, timeout, limits, pace, metrics, faults."""

from calque.operator.layers.chain import Call, Chain, Layer
from calque.operator.layers.default import add_layers, default_layers
from calque.operator.layers.faults import Fault, FaultInjection
from calque.operator.layers.limit import ConcurrencyLimit
from calque.operator.layers.metrics import Metrics, VerbMetrics
from calque.operator.layers.pace import Bandwidth, Pace
from calque.operator.layers.retry import Retry
from calque.operator.layers.timeout import Deadline, Timeout

__all__ = [
    "Bandwidth",
    "Call",
    "Chain",
    "ConcurrencyLimit",
    "Deadline",
    "Fault",
    "FaultInjection",
    "Layer",
    "Metrics",
    "Pace",
    "Retry",
    "Timeout",
    "VerbMetrics",
    "add_layers",
    "default_layers",
]
