"""What each layer of calque is made of stands in ARCHITECTURE.md.

Names are imported when they are first used: a command that needs one layer does not pay for all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calque._version import __version__

if TYPE_CHECKING:
    from calque import errors
    from calque.loader.api import load, preview, sql
    from calque.operator import AsyncCopier, AsyncOperator, Checkpoint, Copier, Operator
    from calque.store.open_project import open_project

__all__ = [
    "AsyncCopier",
    "AsyncOperator",
    "Checkpoint",
    "Copier",
    "Operator",
    "__version__",
    "errors",
    "load",
    "open_project",
    "preview",
    "sql",
]

_HOMES = {
    "AsyncCopier": "calque.operator",
    "AsyncOperator": "calque.operator",
    "Checkpoint": "calque.operator",
    "Copier": "calque.operator",
    "Operator": "calque.operator",
    "load": "calque.loader.api",
    "open_project": "calque.store.open_project",
    "preview": "calque.loader.api",
    "sql": "calque.loader.api",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("calque.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'calque' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
