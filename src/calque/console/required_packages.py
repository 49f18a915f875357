"""What the console needs from outside, asked for before its modules are read."""

from __future__ import annotations

from importlib import import_module

from calque.errors import MissingExtra

PACKAGES = ("jinja2", "python_multipart", "starlette", "uvicorn")


def require_console_extra() -> None:
    """MissingExtra, which names the extra, unless every package of it can be imported."""
    for package in PACKAGES:
        try:
            import_module(package)
        except ImportError as error:
            raise MissingExtra.of("console", f"The console ({package})") from error
