"""Operator and Copier: one set of verbs over every storage service."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calque.operator.capability import Capability
from calque.operator.checkpoint import Checkpoint
from calque.operator.copier import Copier
from calque.operator.operator import Operator
from calque.operator.options import (
    CopyOptions,
    DeleteOptions,
    ReadOptions,
    WriteOptions,
)
from calque.operator.presign import PresignedRequest
from calque.operator.service import CopyDriver, Leftover, Service

if TYPE_CHECKING:
    from calque.operator.async_copier import AsyncCopier
    from calque.operator.async_operator import AsyncOperator

__all__ = [
    "AsyncCopier",
    "AsyncOperator",
    "Capability",
    "Checkpoint",
    "Copier",
    "CopyDriver",
    "CopyOptions",
    "DeleteOptions",
    "Leftover",
    "Operator",
    "PresignedRequest",
    "ReadOptions",
    "Service",
    "WriteOptions",
]

# The two bring asyncio with them, which most programs never use: imported when first asked for.
_HOMES = {
    "AsyncCopier": "calque.operator.async_copier",
    "AsyncOperator": "calque.operator.async_operator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calque.operator' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
