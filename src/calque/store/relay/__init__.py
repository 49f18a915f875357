"""Pieces over gRPC, for clients that cannot reach a node's root: ``server`` and ``client``."""
