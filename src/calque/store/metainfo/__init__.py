"""The protocol of a satellite: its messages and calls, API keys, and the client's end of gRPC.

A client needs this package and nothing of :mod:`calque.store.satellite`, which answers the calls.

``pb`` (messages), ``service`` (every call, typed, for both ways to reach a satellite), ``client``,
``status`` (our errors on the wire), ``keepalive``, ``tls``, ``api_key``.
"""

from calque.store.metainfo.api_key import Action, AllowedPath, ApiKey
from calque.store.metainfo.client import MetainfoClient
from calque.store.metainfo.service import CALLS, Metainfo

__all__ = ["CALLS", "Action", "AllowedPath", "ApiKey", "Metainfo", "MetainfoClient"]
