"""Benchmarks: ratios of one run against a peer or the limit."""
