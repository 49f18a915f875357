"""What the gateway needs from outside beside the store, asked for before its modules are read."""

from __future__ import annotations

from importlib import import_module

from calque.errors import MissingExtra

PACKAGES = ("awscrt", "httptools")


def require_gateway_extra() -> None:
    """MissingExtra, which names the extra, unless every package of it can be imported."""
    for package in PACKAGES:
        try:
            import_module(package)
        except ImportError as error:
            raise MissingExtra.of("gateway", f"The S3 gateway ({package})") from error
