"""What a transaction says of itself when it begins, on either database."""

from __future__ import annotations

WRITES = "calque_writes"
"""Execution option of a connection: its transactions write, and take their locks at once."""
