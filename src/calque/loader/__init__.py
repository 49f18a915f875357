"""Files into tables, each exactly once.

A statement goes one way: ``statement`` → ``stage`` → ``compare`` → ``plan`` → ``engines`` (which
read by ``formats`` and write by ``writing``) → ``protocol`` (commit through ``tables``) →
``report``. ``flow`` is that way, ``api`` its door; ``work`` and ``manifest`` hold the values
between the steps.

The package can be called: ``calque.load("s3://landing/", into="warehouse.sales")``.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """``calque.load`` is a package and, as the public face shows it, a verb."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from calque.loader.api import load

        return load(*args, **options)


sys.modules[__name__].__class__ = _Callable
