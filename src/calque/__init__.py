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
    from calque.transfer.api import (
        copy_tree,
        copy_tree_async,
        move_tree,
        remove_tree,
        sync_tree,
        sync_tree_async,
    )
    from calque.transfer.check import check_trees, check_trees_async

__all__ = [
    "AsyncCopier",
    "AsyncOperator",
    "Checkpoint",
    "Copier",
    "Operator",
    "__version__",
    "check_trees",
    "check_trees_async",
    "copy_tree",
    "copy_tree_async",
    "errors",
    "load",
    "move_tree",
    "open_project",
    "preview",
    "remove_tree",
    "sql",
    "sync_tree",
    "sync_tree_async",
]

_HOMES = {
    "AsyncCopier": "calque.operator",
    "AsyncOperator": "calque.operator",
    "Checkpoint": "calque.operator",
    "Copier": "calque.operator",
    "Operator": "calque.operator",
    "check_trees": "calque.transfer.check",
    "check_trees_async": "calque.transfer.check",
    "copy_tree": "calque.transfer.api",
    "copy_tree_async": "calque.transfer.api",
    "load": "calque.loader.api",
    "move_tree": "calque.transfer.api",
    "open_project": "calque.store.open_project",
    "preview": "calque.loader.api",
    "remove_tree": "calque.transfer.api",
    "sql": "calque.loader.api",
    "sync_tree": "calque.transfer.api",
    "sync_tree_async": "calque.transfer.api",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("calque.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'calque' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
