"""Where a plan runs: plain local processes, or Spark. Both run the same tasks.

``choose`` says which engine. ``local`` runs small plans in this process and others on a
``worker_pool``, one process a core; ``spark`` runs them on executors. ``run_plan`` is what both do
around their tasks, ``sample`` reads the first rows without loading any.
"""

from calque.loader.run.engines.choose import choose_engine

__all__ = ["choose_engine"]
