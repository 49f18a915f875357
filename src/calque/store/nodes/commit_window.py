"""How long a piece may be without a row: an upload may still be under way."""

from __future__ import annotations

from datetime import timedelta

COMMIT_WINDOW = timedelta(hours=72)
"""A piece younger than this may belong to an upload that is still under way: a segment is committed
within a day of its begin or never, and clocks differ."""
