"""What the store needs from outside, asked for before any of its modules is read."""

from __future__ import annotations

from importlib import import_module

from calque.errors import MissingExtra

PACKAGES = ("cryptography", "google.protobuf", "grpc", "prometheus_client", "pyeclib", "xxhash")
"""The packages of the extra ``store``."""


def require_store_extra() -> None:
    """MissingExtra, which names the extra, unless every package of it can be imported."""
    for package in PACKAGES:
        try:
            import_module(package)
        except ImportError as error:
            raise MissingExtra.of("store", f"The calque store ({package})") from error
