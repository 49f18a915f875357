"""What each layer of calque is made of stands in ARCHITECTURE.md."""

from calque.operator import AsyncCopier, AsyncOperator, Checkpoint, Copier, Operator

__all__ = ["AsyncCopier", "AsyncOperator", "Checkpoint", "Copier", "Operator"]
