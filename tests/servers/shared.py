"""Servers that every test of a process shares: each is started on first use, and once.

Whoever uses one makes a bucket, a container or a database of its own in it.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.servers.azurite import Azurite
from tests.servers.postgres import PostgresServer, running_postgres
from tests.servers.seaweedfs import S3Server, seaweedfs

_running = ExitStack()


@cache
def shared_postgres() -> PostgresServer:
    """PostgreSQL; ask it for a database. Tests kill its clients, never the machine."""
    return _running.enter_context(running_postgres(power_may_fail=False))


@cache
def shared_seaweedfs() -> S3Server:
    """SeaweedFS; make a bucket in it."""
    return _running.enter_context(seaweedfs())


@cache
def shared_azurite() -> Azurite:
    """Azurite with two accounts; make a container in one. Unavailable where it cannot be had."""
    work = _running.enter_context(tempfile.TemporaryDirectory(prefix="calque-azurite-"))
    return _running.enter_context(Azurite(Path(work)))


def stop_shared() -> None:
    """Stop those that were started; the next use starts them anew."""
    _running.close()
    for start in (shared_postgres, shared_seaweedfs, shared_azurite):
        start.cache_clear()
