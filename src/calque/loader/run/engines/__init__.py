"""Where a plan runs: plain local processes, or Spark. Both run the same tasks."""

from calque.loader.run.engines.choose import engine_for

__all__ = ["engine_for"]
