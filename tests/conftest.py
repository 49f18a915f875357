"""What holds for every test: signals, servers that all share, and which tests are quick."""

from __future__ import annotations

import gc
import os
import re
import signal
import threading

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from calque.errors import Unavailable
from tests.schedule import Schedule, start_order
from tests.servers.azurite import Azurite
from tests.servers.postgres import PostgresServer
from tests.servers.seaweedfs import S3Server
from tests.servers.shared import (
    shared_azurite,
    shared_postgres,
    shared_seaweedfs,
    stop_shared,
)

# A job in the background of a shell ignores Ctrl-C, one under nohup a closed terminal, and so would
# every process they start; tests send both.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Collecting makes a million objects that all stay: looking through them again and again would be a
# tenth of it. `pytest_runtestloop` turns it on again.
gc.disable()

# How fast a machine draws examples says nothing about what is tried with them. The same are drawn
# every time: who changed a page should not find, by dice, what somebody else broke. `make soak`
# draws new ones.
_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same examples", _ANY_MACHINE, derandomize=True)
settings.register_profile("new examples", _ANY_MACHINE, derandomize=False)
settings.load_profile("same examples")


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """One PostgreSQL for all tests of a worker; each asks it for a database of its own."""
    return shared_postgres()


@pytest.fixture(scope="session")
def seaweed() -> S3Server:
    """One SeaweedFS for all tests of a worker; each has a bucket, or a root in one, of its own."""
    return shared_seaweedfs()


@pytest.fixture(scope="session")
def azurite() -> Azurite:
    """One Azurite for all tests of a worker; they are skipped, with the reason, without it."""
    try:
        return shared_azurite()
    except Unavailable as error:
        pytest.skip(f"Azurite cannot be had: {error}")


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test writes into the ledger of whoever runs it."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module", autouse=True)
def _small_heap() -> None:
    """What lives when a file begins was imported or is shared: no collection looks at it again.

    Else each would take a tenth of a second, late in a run, and some tests ask for dozens.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """The servers that tests shared end with the last of them."""
    stop_shared()
    gc.unfreeze()  # libraries that count what they leave behind would complain


QUICK = re.compile(
    r"tests/(values|operator|ledger|store)/|tests/test_|/formats/|test_(parse|render)"
)
"""Where quick tests lie."""

SLOW_FILES = re.compile(
    r"services/(s3|gcs|azblob)/"  # servers of clouds
    r"|test_(killed|fuzz|one_bad_file|readme|histories|large_copies|connections|plans)\w*\.py"
)
"""Files among them that start processes or servers, or compute for seconds."""

SLOW_CASES = re.compile(r"postgres|seaweedfs|azblob|gcs|s3|gRPC")
"""Parameters that ask for a server."""

SERVERS = {"postgres", "postgres_url", "seaweed", "cloud", "server", "moto_server", "spark"}
"""Fixtures that start one."""


def is_quick(item: pytest.Item) -> bool:
    """Whether a test needs no server, no JVM and no second: those that `make quick` runs."""
    path, _, case = item.nodeid.partition("::")
    return (
        QUICK.search(path) is not None
        and SLOW_FILES.search(path) is None
        and SLOW_CASES.search(case.partition("[")[2]) is None
        and not SERVERS & set(getattr(item, "fixturenames", ()))
        and item.get_closest_marker("soak") is None
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is quick, and put first what takes longest."""
    for item in items:
        if is_quick(item):
            item.add_marker(pytest.mark.quick)
    items.sort(key=lambda item: start_order(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """From here on objects come and go; in the process that only hands out tests too."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Schedule | None:
    """Whole files, as with ``--dist loadfile``, and those that share a JVM together."""
    return Schedule(config, log) if config.getvalue("dist") == "loadfile" else None
