"""The satellite's service: messages, endpoint, API keys, and gRPC at both ends."""

from calque.store.metainfo.service import CALLS, Metainfo

__all__ = ["CALLS", "Metainfo"]
