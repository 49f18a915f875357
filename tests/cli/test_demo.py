"""The tour behind ``make demo``."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import requests

from tests.servers.process import free_ports

TOUR = [sys.executable, "-m", "calque.cli", "demo", "--folder"]


def test_the_tour_runs_to_its_summary(tmp_path: Path) -> None:
    """Every chapter's claim is checked by the tour itself; it ends with what was seen."""
    done = subprocess.run(
        [*TOUR, "tour", "--keep"], cwd=tmp_path, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "still 60000 rows" in done.stdout
    assert "the original deleted, the copy read back\tthe same bytes" in done.stdout
    assert "two of eight nodes deleted, then repaired\tthe same bytes" in done.stdout
    assert "garbage collected\t" in done.stdout
    assert "resumed\t1.0 GiB, the same bytes" in done.stdout
    assert "a tree synchronised\tday-1.csv, day-2.csv, third.csv" in done.stdout
    assert_the_console_shows_it(tmp_path, done.stdout.splitlines()[-1])


def assert_the_console_shows_it(folder: Path, line: str) -> None:
    """The last line of the tour is a command, and with it the console has what the tour made."""
    told, _, command = line.partition(": cd ")
    assert told == "See it in a browser, at http://127.0.0.1:7780/console"
    (port,) = free_ports(1)
    command = f"cd {command.replace('7780', str(port))} --json"
    assert command.count("calque serve") == 1
    serve = command.replace("calque serve", f"exec {sys.executable} -m calque.cli serve")
    process = subprocess.Popen(["bash", "-c", serve], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = ""
        for line in iter(process.stdout.readline, ""):
            said += line
            if line.startswith("}"):
                break
        address = json.loads(said)["console"]["sign_in"]
        session = requests.Session()
        session.trust_env = False
        where, _, token = address.partition("?token=")
        overview = session.post(where, data={"token": token}, timeout=60).text
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert "Saved by copies" in overview
    assert overview.count("COMMITTED") >= 2
    assert process.returncode == 0


def test_a_folder_that_is_not_the_demo_s_is_left_alone(tmp_path: Path) -> None:
    """The tour makes its folder anew, so it refuses one that holds somebody's files."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = subprocess.run([*TOUR, "mine"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "--folder" in done.stderr
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_the_console_is_served_until_it_is_stopped(tmp_path: Path) -> None:
    """On a terminal the tour ends in the console; Ctrl-C ends both, and nothing went wrong."""
    code = (
        "from pathlib import Path; from calque.cli.commands.demo import Tour; "
        "import subprocess, sys; f = Path('tour'); f.mkdir(); "
        "subprocess.run([sys.executable, '-m', 'calque.cli', 'store', 'init', 'tour/store'],"
        " check=True, capture_output=True); Tour(f).browse(); print('ended')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    said = ""
    while "sign in, once" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to both
    out, _ = process.communicate(timeout=60)
    assert out.endswith("ended\n")
    assert process.returncode == 0
