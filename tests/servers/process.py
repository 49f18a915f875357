"""A server process that a test starts on a free port, waits for, and stops by its own pid."""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from calque.errors import Unavailable

HOST = "127.0.0.1"


PORTS = range(15_000, 32_000)
"""Below those that systems deal out, to clients and to servers that ask for any: else somebody
could be dealt one between the moment it is chosen and that in which its server listens."""
_claims: list[socket.socket] = []


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, and that no other process of tests is given while this one lives."""
    ports = list(itertools.islice(filter(_claim, random.sample(PORTS, len(PORTS))), count))
    assert len(ports) == count
    return ports


def _claim(port: int) -> bool:
    # A name of Linux, not of a file: it is gone with the process, however that ends.
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0calque-tests-port-{port}")
        with socket.socket() as probe:
            probe.bind((HOST, port))
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True


class ServerProcess:
    """One child process and its log; ``stop`` ends this process and nothing else."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._name = Path(command[0]).name
        self._log = log
        with log.open("wb") as out:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd=cwd
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def log(self) -> Path:
        """The file that gets what it prints."""
        return self._log

    def wait_until(self, ready: Callable[[], bool], *, seconds: float = 60.0) -> None:
        """Return once ``ready`` says so; Unavailable, with the log's tail, when it never does."""
        limit = time.monotonic() + seconds
        while self._child.poll() is None and time.monotonic() < limit:
            with contextlib.suppress(OSError):
                if ready():
                    return
            time.sleep(0.05)
        self.stop()
        tail = self._log.read_text(errors="replace")[-2000:]
        raise Unavailable(f"{self._name} did not start within {seconds:.0f} s", hint=tail)

    def stop(self, *, grace: float = 5.0) -> None:
        """Ask it to end, then end it; safe to call twice."""
        if self._child.poll() is not None:
            return
        self._child.terminate()
        try:
            self._child.wait(grace)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def answers_http(port: int) -> bool:
    """Whether something on the port speaks HTTP; any status will do."""
    with socket.create_connection((HOST, port), timeout=2) as probe:
        probe.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return probe.recv(5) == b"HTTP/"
