"""The one name of pendulum that a page uses."""

from datetime import datetime

__all__ = ["datetime"]
