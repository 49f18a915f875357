"""Where a plan runs: plain local processes, or Spark. Both run the same tasks."""

from calque.loader.run.engines.choose import choose_engine

__all__ = ["choose_engine"]
