"""Pieces over gRPC, for clients that cannot reach a node's root: ``server`` and ``client``.

``stream_threads`` shares the threads of the server among the keys of its clients.
"""
