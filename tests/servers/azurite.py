"""Azurite, Microsoft's emulator of Azure Blob: installed once from npm, run by Node.

Pinned to 3.37.0, the first that copies blocks from a URL. It is installed on first use
(``npm.py``), or ahead of it by ``python -m tests.servers.azurite``.
"""

from __future__ import annotations

import base64
import os
import secrets
from contextlib import suppress
from pathlib import Path

from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient

from tests.servers.npm import find_node, install_packages
from tests.servers.process import HOST, ServerProcess, answers_http, free_ports

VERSION = "3.37.0"
# The newest release of its telemetry asks for a package that is not always published; any will do.
PACKAGE = {
    "private": True,
    "dependencies": {"azurite": VERSION},
    "overrides": {"applicationinsights": "3.16.0"},
}


class Azurite:
    """A running Azurite with its own accounts, in memory; ``with Azurite(log_dir) as azurite``."""

    def __init__(self, work: Path, *, accounts: tuple[str, ...] = ("calquetest", "calqueother")):
        self.keys = {name: base64.b64encode(secrets.token_bytes(32)).decode() for name in accounts}
        (self.port,) = free_ports(1)
        main = installed() / "node_modules/azurite/dist/src/blob/main.js"
        listed = ";".join(f"{name}:{key}" for name, key in self.keys.items())
        self._process = ServerProcess(
            [
                str(find_node()),
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
        """A container, made by Microsoft's own client unless it is there."""
        credential = {"account_name": account, "account_key": self.keys[account]}
        client = BlobServiceClient(self.endpoint(account), credential=credential)
        with client, suppress(ResourceExistsError):
            client.create_container(name)

    def stop(self) -> None:
        self._process.stop()

    def __enter__(self) -> Azurite:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def installed() -> Path:
    """The folder of the installation, made on first use; Unavailable without npm."""
    return install_packages(f"azurite-{VERSION}", PACKAGE)


if __name__ == "__main__":
    print(installed())
