"""A module that is imported when something of it is first asked for.

For what most runs of a command never reach: whoever finds nothing to load needs no reader, no
writer and no Arrow. Type checkers and the layers see a plain import::

    if TYPE_CHECKING:
        from calque.loader import load_batches
    else:
        load_batches = LateModule("calque.loader.load_batches")
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class LateModule(ModuleType):
    """Stands for the module of its name; asks it each time, so that it has nothing of its own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)
