"""The satellite: it answers the calls of :mod:`calque.store.metainfo` out of the metabase.

A call goes ``server`` (gRPC) → ``endpoint`` (who calls, how often, how long it took) → a function
of ``calls`` → the metabase. In one process a client uses the endpoint itself.

What holds:

1. Nobody is answered before ``caller`` has checked the API key, and every call asks what it may.
2. What a client must bring back unchanged (uploads, segments, leave for a piece) is signed by
   ``signer``; nothing of it is kept here.
3. Pieces are deleted after the transaction that freed them, by ``freed_pieces``, from a queue that
   the same transaction filled.

Beside them: ``satellite`` (what the calls share), ``piece_tokens``, ``open_pieces``,
``rate_limit``, ``admin``, ``metrics``, ``settings``.
"""

from calque.store.satellite.endpoint import Endpoint
from calque.store.satellite.server import MetainfoServer, serve_metainfo
from calque.store.satellite.settings import SatelliteSettings

__all__ = ["Endpoint", "MetainfoServer", "SatelliteSettings", "serve_metainfo"]
