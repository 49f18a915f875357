"""Layers around every request of a service: retry, timeout, concurrency limit, metrics, faults."""
