"""A cache of loaded classes that makes Spark start in a third of the time.

JDK 25 can store what a JVM has loaded and linked, and map it again at the next start. The file
(about 170 MB) is made once by a training run: ``calque doctor --prepare``, which ``make setup``
calls. It is named after the installation it serves and everything it depends on, so another JVM or
another Spark never meets it; without it, or with a damaged one, Spark starts as it always did.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from calque.spark.java import Jvm

FIRST_WITH_CACHE = 25
_QUIET = "-Xlog:disable"


def jvm_options(path: Path | None) -> list[str]:
    """The JVM flags that use the cache, none where there is none."""
    return [f"-XX:AOTCache={path}", _QUIET] if path is not None and path.is_file() else []


def training_options(output: Path) -> list[str]:
    """The JVM flags of a training run that writes the cache when it ends."""
    return [f"-XX:AOTCacheOutput={output}", _QUIET]


def cache_path(jvm: Jvm, command: list[str]) -> Path | None:
    """Where the cache of this JVM and command is or would be; None where the JVM has none."""
    if jvm.major < FIRST_WITH_CACHE:
        return None
    return _cache_folder() / f"{_installation()}-{_key(jvm.version, *command)}.aot"


def is_accepted(path: Path, command: list[str]) -> bool:
    """Whether the JVM accepts the cache: a damaged one, or one of another JVM, it does not."""
    strict = ["-XX:AOTMode=on", *jvm_options(path)]
    tried = subprocess.run([*command, *strict, "-version"], capture_output=True, timeout=60)
    return path.is_file() and tried.returncode == 0


def remove_others(path: Path) -> None:
    """Remove the caches of JVMs and Sparks that this installation had before."""
    for other in path.parent.glob(f"{_installation()}-*.aot"):
        if other != path:
            other.unlink(missing_ok=True)


def _installation() -> str:
    """Two environments on one machine keep a cache each."""
    return f"spark-{_key(str(Path(sys.prefix).resolve()))}"


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "calque"
