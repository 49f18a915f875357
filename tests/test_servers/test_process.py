"""Ports for servers that cannot ask for any."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.program import run_program
from tests.servers import process
from tests.servers.process import HOST, PORTS, free_ports

FEW = range(31_000, 31_060)
CHOOSE = f"""
from tests.servers import process
process.PORTS = {FEW}
print(process.free_ports(20))
"""


def test_another_process_is_given_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the one that chose them lives, whether anybody listens there yet or not."""
    monkeypatch.setattr(process, "PORTS", FEW)
    ours = free_ports(20)
    theirs = eval(run_program(CHOOSE, check=True).stdout)
    assert len({*ours, *theirs}) == 40


def test_the_system_deals_out_others() -> None:
    """To servers that ask for any, and to clients."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    if lowest < PORTS.stop:
        pytest.skip(f"this system deals out ports from {lowest}")
    for _ in range(50):
        with socket.create_server((HOST, 0)) as server:
            address = server.getsockname()
            with socket.create_connection(address) as client:
                assert not {address[1], client.getsockname()[1]} & set(PORTS)
    assert set(free_ports(5)) <= set(PORTS)
