"""Operator and Copier: one set of verbs over every storage service."""

from calque.operator.async_copier import AsyncCopier
from calque.operator.async_operator import AsyncOperator
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
