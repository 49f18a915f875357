"""Pieces over gRPC, for clients that cannot reach a node's root: ``server`` and ``client``.

``node_streams`` is the server's side towards its nodes.
"""
