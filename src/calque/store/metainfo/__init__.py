"""The satellite's service: messages, endpoint, API keys, and gRPC at both ends."""

from calque.store.metainfo.api_key import Action, AllowedPath, ApiKey
from calque.store.metainfo.client import MetainfoClient
from calque.store.metainfo.endpoint.endpoint import Endpoint
from calque.store.metainfo.server import MetainfoServer, serve_metainfo
from calque.store.metainfo.service import CALLS, Metainfo
from calque.store.metainfo.settings import SatelliteSettings

__all__ = [
    "CALLS",
    "Action",
    "AllowedPath",
    "ApiKey",
    "Endpoint",
    "Metainfo",
    "MetainfoClient",
    "MetainfoServer",
    "SatelliteSettings",
    "serve_metainfo",
]
