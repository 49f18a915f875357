"""The work itself: engines run tasks, which read by ``formats`` and write by ``writing``."""
