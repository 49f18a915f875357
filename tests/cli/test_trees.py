"""Trees on the command line, against files and a real S3 server."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from calque.cli import trees
from tests.cli.conftest import Calque, Spawn
from tests.operator.services.s3.server import make_bucket
from tests.servers.proxy import Exchange, Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server

OPTIONS = ("-o", "key_order=false")
_numbers = count()


@pytest.fixture(scope="module")
def bucket(seaweed: S3Server) -> S3Server:
    """A server with a bucket for these tests."""
    make_bucket(seaweed, "cli-trees")
    return seaweed


@pytest.fixture
def proxy(bucket: S3Server, environment: dict[str, str]) -> Iterator[FaultProxy]:
    """The server as the commands reach it."""
    seaweed = bucket
    with FaultProxy(seaweed.endpoint) as running:
        environment |= {**seaweed.environment, "AWS_ENDPOINT_URL_S3": running.endpoint}
        yield running


@pytest.fixture
def root() -> str:
    return f"s3://cli-trees/r{next(_numbers)}"


@pytest.fixture
def site(folder: Path) -> Path:
    """A small tree."""
    for name in ("index.html", "css/a.css", "css-2/b.css", "img/c d.png"):
        file = folder / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return folder / "site"


def tree(root: Path) -> dict[str, str]:
    files = (each for each in root.rglob("*") if each.is_file())
    return {str(each.relative_to(root)): each.read_text() for each in files}


def test_there_and_back(
    calque: Calque, site: Path, folder: Path, proxy: FaultProxy, root: str
) -> None:
    """Up, again with nothing to do, across, down: the same tree, and a report with every object."""
    up = calque("cp", "-r", "site", f"{root}/", "--report", "rows.jsonl", *OPTIONS)
    assert up.returncode == 0, up.stderr
    assert "4 copied" in up.stderr
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert sorted(row["path"] for row in rows) == sorted(tree(site))
    again = calque("sync", "site/", f"{root}/site/", "--json", *OPTIONS)
    told = json.loads(again.stdout)
    assert (told["totals"]["up_to_date"]["objects"], told["exit_code"]) == (4, 0)
    across = calque("cp", "-r", f"{root}/site", f"{root}/copy", "--json", *OPTIONS)
    assert json.loads(across.stdout)["totals"]["routes"]["server-side"]["objects"] == 4
    down = calque("cp", "-r", f"{root}/copy/site/", "back", *OPTIONS)
    assert down.returncode == 0, down.stderr
    assert tree(folder / "back") == tree(site)


def test_sync_deletes_only_when_told(calque: Calque, site: Path, folder: Path) -> None:
    """The dry run names what becomes what, and what would go; the run does just that."""
    assert calque("sync", "site/", "mirror").returncode == 0
    (site / "index.html").unlink()
    (site / "new").write_text("n")
    assert calque("sync", "site/", "mirror").returncode == 0
    assert (folder / "mirror" / "index.html").exists()
    dry = calque("sync", "site/", "mirror", "--delete", "--dry-run")
    lines = dry.stdout.splitlines()
    assert lines[0] == f"file://{site} → file://{folder}/mirror"
    assert lines[1:] == ["- index.html  (only at the target)"]
    assert (folder / "mirror" / "index.html").exists()
    assert calque("sync", "site/", "mirror", "--delete", "--yes").returncode == 0
    assert tree(folder / "mirror") == tree(site)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("sync", "none/", "b"), 1, "does not exist"),
        (("sync", "site/", "site/css"), 1, "overlap"),
        (("sync", "empty/", "site", "--delete"), 1, "--delete-all"),
        (("sync", "site/", "site/index.html"), 1, "is a file"),
        (("sync", "site/"), 2, "a source and a target are needed"),
        (("check", "site/"), 2, "a source and a target are needed"),
        (("sync", "site/", "b", "--delete", "--max-delete", "x"), 2, "no bound on deletes"),
        (("sync", "site/", "b", "--concurrent", "0"), 2, "at least 1"),
        (("sync", "site/", "b", "--min-size", "2", "--max-size", "1"), 2, "no object has"),
        (("sync", "site/", "b", "--download"), 2, "--compare checksum"),
        (("cp", "-r", "site/", "b", "--concurrent", "0"), 2, "at least 1"),
        (("cp", "-r", "site/", "b", "--if-match", "x"), 2, "of one object"),
        (("cp", "-r", "site/", "b", "--include", "[a"), 2, "without its ]"),
        (("cp", "-r", "site/", "b", "--files-from", "none"), 1, "no file 'none'"),
        (("rm", "-r", "site/", "--if-match", "x"), 2, "of one object"),
    ],
)
def test_wrong_requests(
    calque: Calque, site: Path, folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """Each its own clear message, and nothing is touched."""
    (folder / "empty").mkdir()
    before = tree(site)
    done = calque(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert tree(site) == before
    assert not (folder / "b").exists()


def test_a_report_is_neither_copied_nor_deleted(calque: Calque, site: Path, folder: Path) -> None:
    """A file of rows within a tree of the run is refused, unless it is left out of the tree."""
    for report, more in (("site/r.csv", ()), ("mirror/r.csv", ("--delete", "--yes"))):
        done = calque("sync", "site/", "mirror", "--report", report, *more)
        assert done.returncode == 1, done.stderr
        assert "lies in" in done.stderr
        assert not (folder / "mirror").exists()
    done = calque("sync", "site/", "mirror", "--report", "site/r.csv", "--exclude", "/r.csv*")
    assert done.returncode == 0, done.stderr
    assert tree(site).keys() - tree(folder / "mirror").keys() == {"r.csv"}
    report = ("--report", "mirror/r.csv")
    assert calque("cp", "-r", "site/", "mirror", "--exclude", "r.csv", *report).returncode == 0
    assert (folder / "mirror" / "r.csv").read_text().count("\n") == 5


def test_exit_code_of_a_part(calque: Calque, site: Path, folder: Path) -> None:
    """3 where some failed and some did not; each is named."""
    (site / ".calque-000000000000000000000000.tmp").write_text("not ours, but named so")
    (folder / "target" / "css").mkdir(parents=True)
    (folder / "target" / "css" / "a.css").mkdir()
    done = calque("cp", "-r", "site/", "target")
    assert done.returncode == 3
    assert "failed: css/a.css" in done.stderr


def test_ctrl_c_ends_with_what_was_done(
    calque: Calque, spawn: Spawn, folder: Path, proxy: FaultProxy, root: str
) -> None:
    """Once: what is in flight ends, exit 130, the way on is told; the same command goes on."""
    for number in range(60):
        file = folder / "many" / f"{number:03}"
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    proxy.add(Fault(method="PUT", times=None, delay=0.2))
    command = ("cp", "-r", "many/", f"{root}/", "--concurrent", "2", *OPTIONS)
    process = spawn(*command)
    while proxy.count("PUT") < 3 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130, said
    assert "go on with: calque cp -r" in said
    done = proxy.count("PUT")
    assert 3 <= done < 60
    proxy.reset()
    again = calque(*command)
    assert again.returncode == 0, again.stderr
    assert proxy.count("PUT") == 60 - done
    assert calque("ls", "-r", f"{root}/", *OPTIONS).stdout.count("\n") == 60


def test_a_second_ctrl_c_aborts_and_leaves_nothing(
    calque: Calque, spawn: Spawn, folder: Path, proxy: FaultProxy, root: str
) -> None:
    """Parts of a large object are on their way and do not arrive: exit 130 at once, and the upload
    is gone; whoever runs it again copies it."""
    (folder / "many").mkdir()
    (folder / "many" / "big").write_bytes(bytes(12 * 1024 * 1024))

    def is_part(each: Exchange) -> bool:  # and not our mark, by which an upload is known
        return "partNumber=" in each.target and "partNumber=10000" not in each.target

    proxy.add(Fault(method="PUT", where=is_part, times=None, delay=600.0))
    more = (*OPTIONS, "--chunk", "5MiB")
    command = ("cp", "-r", "many/", f"{root}/", *more)
    process = spawn(*command)
    while not any(map(is_part, list(proxy.log))) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)  # which counts as one, and is not lost beside the first
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "go on with: calque cp -r many/" in said
    proxy.reset()
    left = calque("sweep", f"{root}/", "--older-than", "0s", "--dry-run", "--json", *OPTIONS)
    assert proxy.seen("GET", "uploads"), "unfinished uploads were looked for"
    assert json.loads(left.stdout) == [], left.stdout
    assert calque(*command).returncode == 0
    assert calque("ls", "-r", f"{root}/", *OPTIONS).stdout.count("\n") == 1


def test_ctrl_c_within_a_small_bandwidth(
    calque: Calque, spawn: Spawn, folder: Path, proxy: FaultProxy, root: str
) -> None:
    """A part that has passed is waited for as long as the bandwidth says, but not by who stops."""
    (folder / "many").mkdir()
    (folder / "many" / "big").write_bytes(bytes(12 * 1024 * 1024))
    more = (*OPTIONS, "--chunk", "5MiB", "--bandwidth", "10KiB/s", "--concurrent", "2")
    process = spawn("cp", "-r", "many/", f"{root}/", *more)
    while not proxy.seen("PUT", "partNumber=2") and process.poll() is None:
        time.sleep(0.02)
    time.sleep(1)  # both have passed, and the first is being waited for
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130, said
    assert "go on with: calque cp -r many/" in said


def test_a_second_ctrl_c_leaves_no_file(calque: Calque, spawn: Spawn, folder: Path) -> None:
    """Files wait for the sync of their batch when nobody does any more: none of them is left."""
    (folder / "many").mkdir()
    for number in range(64):
        (folder / "many" / f"{number:02}").write_bytes(bytes(4096))
    process = spawn("cp", "-r", "many/", "copy/", "--bandwidth", "4KiB/s", "--concurrent", "4")
    while not any(folder.glob("copy/.calque-*")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130, said
    assert not any(folder.glob("copy/.calque-*"))
    assert calque("cp", "-r", "many/", "copy/").returncode == 0
    assert len(list((folder / "copy").iterdir())) == 64


def test_ctrl_c_among_deletes(
    calque: Calque, spawn: Spawn, folder: Path, proxy: FaultProxy, root: str
) -> None:
    """Each object that is gone has its row, no other has one, and the same command goes on."""
    for number in range(40):
        file = folder / "many" / f"{number:03}"
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    assert calque("cp", "-r", "many/", f"{root}/", *OPTIONS).returncode == 0
    (folder / "few").mkdir()
    (folder / "few" / "000").write_text("x")
    # Without batches each delete is a request of its own.
    proxy.add(Fault(method="POST", contains="delete", times=None, reply=Reply(400)))
    proxy.add(Fault(method="DELETE", times=None, delay=0.2))
    options = (*OPTIONS, "--delete", "--yes", "--max-delete", "100%", "--concurrent", "2")
    command = ("sync", "few/", f"{root}/", "--report", "rows.jsonl", *options)
    process = spawn(*command)
    while proxy.count("DELETE") < 3 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130, said
    gone = proxy.count("DELETE")
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert sum(row["outcome"] == "deleted" for row in rows) == gone < 39
    proxy.reset()
    assert calque(*command).returncode == 0
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert sorted(row["path"] for row in rows) == [f"{number:03}" for number in range(40)]


def on_terminal(
    folder: Path, environment: dict[str, str], said: str, *arguments: str
) -> tuple[int, str]:
    """The exit code of a command whose input is a terminal, and what it told."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "calque.cli", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(theirs)
        os.write(ours, f"{said}\n".encode())
        _, told = process.communicate(timeout=100)
    os.close(ours)
    return process.returncode, told


@pytest.mark.parametrize(("said", "code", "left"), [("n", 3, 4), ("y", 0, 0)])
def test_a_terminal_is_asked_before_the_first_delete(
    calque: Calque, environment: dict[str, str], folder: Path, said: str, code: int, left: int
) -> None:
    """With the number, the bytes and three names; what is typed decides. --yes is not asked."""
    (folder / "from").mkdir()
    (folder / "from" / "kept").write_text("1")
    (folder / "to").mkdir()
    for name in "abcd":
        (folder / "to" / name).write_text("12")
    code_of, told = on_terminal(folder, environment, said, "sync", "from/", "to", "--delete")
    assert "delete 4 objects (8 B): a, b, c, …?" in told
    assert code_of == code, told
    assert len(list((folder / "to").iterdir())) == left + 1
    assert calque("sync", "from/", "to", "--delete", "--yes").returncode == 0
    assert [each.name for each in (folder / "to").iterdir()] == ["kept"]


def test_the_question_stays_on_the_terminal(environment: dict[str, str], folder: Path) -> None:
    """Nothing is written over it, however long one thinks; the line of progress has gone before."""
    for name in ("from/kept", "to/gone"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("12")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "calque.cli", "sync", "from/", "to", "--delete"]
    told = b""
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        while b"[y/N]: " not in told:
            told += os.read(ours, 1000)
        time.sleep(1)  # five looks of the line of progress
        os.write(ours, b"n\n")
        try:
            while more := os.read(ours, 1000):
                told += more
        except OSError:
            pass  # the other end was closed: that is how a terminal ends
    os.close(ours)
    assert process.returncode == 3
    assert "\x1b[Kdelete 1 object (2 B): gone? [y/N]: n\r\n" in told.decode()


@pytest.mark.parametrize(("said", "code", "left"), [("y", 0, 0), ("n", 3, 4), ("", 3, 4)])
def test_a_terminal_is_asked_before_a_folder_goes(
    folder: Path, environment: dict[str, str], said: str, code: int, left: int
) -> None:
    """``rm -r`` too, with the same words; who types nothing keeps it."""
    (folder / "to").mkdir()
    for name in "abcd":
        (folder / "to" / name).write_text("12")
    found, told = on_terminal(folder, environment, said, "rm", "-r", "to/")
    assert "delete 4 objects (8 B): a, b, c, …?" in told
    assert found == code, told
    assert len(list((folder / "to").iterdir())) == left


def test_nobody_is_asked_for_nothing(
    calque: Calque, environment: dict[str, str], folder: Path, site: Path
) -> None:
    """A dry run, a run that deletes nothing, ``--yes``, and a pipe: no question on any of them."""
    assert calque("cp", "-r", "site/", "to").returncode == 0
    cases = [("sync", "site/", "to", "--delete"), ("rm", "-r", "to/", "--dry-run")]
    for command in cases:
        assert on_terminal(folder, environment, "n", *command)[0] == 0
    (site / "index.html").unlink()
    dry = (*cases[0], "--dry-run")
    code, told = on_terminal(folder, environment, "n", *dry)
    assert (code, "?" in told) == (0, False), told
    assert (folder / "to" / "index.html").exists()
    assert calque(*cases[0]).returncode == 0  # its input is no terminal
    assert tree(folder / "to") == tree(site)
    code, told = on_terminal(folder, environment, "n", "rm", "-r", "to/", "--yes")
    assert (code, "?" in told) == (0, False), told
    assert tree(folder / "to") == {}
    assert calque("rm", "-r", "site/").returncode == 0
    assert tree(site) == {}


def test_progress_without_a_terminal(
    calque_here: Calque,
    folder: Path,
    proxy: FaultProxy,
    root: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lines of their own: what was listed so far at once, then how much of all, and time left."""
    monkeypatch.setattr(trees, "_SAY_SECONDS", 0.05)
    for number in range(12):
        file = folder / "many" / f"{number:03}"
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    proxy.add(Fault(method="GET", times=1, delay=1.0))  # the listing of the target
    proxy.add(Fault(method="PUT", times=None, delay=0.3))
    done = calque_here("cp", "-r", "many/", f"{root}/", "--concurrent", "2", *OPTIONS)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("0 listed so far, 0 copied")
    assert any(
        re.match(r"copying: \d+ copied, .* of 12 B \(\d+%\), \d+ s left", each) for each in lines
    )
    assert "\r" not in done.stderr
    told = calque_here("cp", "-r", "many/", f"{root}/", "--json", *OPTIONS)
    assert json.loads(told.stdout)["totals"]["up_to_date"]["objects"] == 12


def test_globs_and_several_sources(calque: Calque, site: Path, folder: Path) -> None:
    """A pattern needs no -r; several sources keep their names; rm takes patterns too."""
    assert calque("cp", "site/*.html", "pages/").returncode == 0
    assert tree(folder / "pages") == {"index.html": "index.html"}
    assert calque("cp", "-r", "site/css", "site/img", "some").returncode == 0
    assert set(tree(folder / "some")) == {"css/a.css", "img/c d.png"}
    assert calque("rm", "some/c*").returncode == 0
    assert set(tree(folder / "some")) == {"img/c d.png"}
    assert calque("mv", "-r", "some/img", "moved/").returncode == 0
    assert set(tree(folder / "moved")) == {"img/c d.png"}
    assert not (folder / "some" / "img").exists()


def test_rules_count_in_the_order_they_are_typed(calque: Calque, site: Path, folder: Path) -> None:
    """The first that matches decides, whichever of the two kinds it is."""
    calque("cp", "-r", "site/", "one", "--include", "css/**", "--exclude", "*.css")
    calque("cp", "-r", "site/", "two", "--exclude", "*.css", "--include", "css/**")
    assert set(tree(folder / "one")) == {"index.html", "css/a.css", "img/c d.png"}
    assert set(tree(folder / "two")) == {"index.html", "img/c d.png"}


def test_names_from_a_file_and_from_a_report(calque: Calque, site: Path, folder: Path) -> None:
    """Only those; a missing one is a failed entry, which a second run can start from."""
    (folder / "names").write_text("index.html\nnone\n")
    done = calque("cp", "-r", "site/", "t", "--files-from", "names", "--report", "r.csv")
    assert done.returncode == 3
    assert set(tree(folder / "t")) == {"index.html"}
    (site / "none").write_text("here now")
    assert calque("cp", "-r", "site/", "t", "--from-report", "r.csv").returncode == 0
    assert set(tree(folder / "t")) == {"index.html", "none"}


def test_a_report_of_several_sources_is_begun_from(
    calque: Calque, site: Path, folder: Path
) -> None:
    """Each path is of the one source whose name it begins with, or of one that keeps no name."""
    names = ("css/a.css", "index.html")
    for name in names:
        (folder / "t" / name / "in the way").mkdir(parents=True)
    command = ("cp", "-r", "site/css", "site/img/", "site/index.html", "t")
    assert calque(*command, "--report", "r.jsonl").returncode == 3
    for name in names:
        (folder / "t" / name / "in the way").rmdir()
        (folder / "t" / name).rmdir()
    done = calque(*command, "--from-report", "r.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["totals"]["copied"]["objects"] == len(names)
    done = calque(*command, "--from-report", "r.jsonl", "--only", "copied", "--json")
    assert json.loads(done.stdout)["totals"]["up_to_date"]["objects"] == 1
    assert set(tree(folder / "t")) == {*names, "c d.png"}


def test_a_state_folder_that_cannot_be_written(
    calque: Calque, site: Path, folder: Path, environment: dict[str, str]
) -> None:
    """It is told, and nothing is copied: a run that could not be resumed is not begun quietly."""
    (folder / "file").write_text("")
    environment["XDG_STATE_HOME"] = str(folder / "file")
    done = calque("cp", "-r", "site/", "t")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert os.path.exists(folder / "t") is False


def test_verify_looks_at_every_copy_again(
    calque: Calque, site: Path, folder: Path, proxy: FaultProxy, root: str
) -> None:
    """The last line says how many were found as they were made; --json has it too."""
    done = calque("cp", "-r", "site/", f"{root}/", "--verify", *OPTIONS)
    assert done.returncode == 0
    assert "4 of 4 copies verified" in done.stderr
    done = calque("sync", f"{root}/", "down/", "--verify", "--json", *OPTIONS)
    assert json.loads(done.stdout)["verified"] == 4
    done = calque("mv", "-r", "down/", "moved/", "--verify")
    assert "4 of 4 copies verified" in done.stderr
    done = calque("mv", "moved/index.html", "other.html", "--verify")
    assert done.returncode == 2
    assert "--verify" in done.stderr


def test_nothing_to_delete_is_told_as_such(calque: Calque, folder: Path) -> None:
    """A folder without anything in it: the line counts what went, which is nothing."""
    (folder / "empty").mkdir()
    done = calque("rm", "-r", "empty/")
    assert (done.returncode, done.stderr[:12]) == (0, "0 deleted in")


def test_nothing_done_is_no_part(calque: Calque, site: Path, folder: Path) -> None:
    """1 where every object failed, each with the class of its error in its row; 3 is for some."""
    for name in tree(site):
        (folder / "target" / name).mkdir(parents=True)
    done = calque("cp", "-r", "site/", "target", "--report", "rows.jsonl", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["exit_code"], told["totals"]["failed"]["objects"]) == (1, 4)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert sorted(row["path"] for row in rows) == sorted(tree(site))
    assert all(row["outcome"] == "failed" and row["error"] and row["why"] for row in rows)


def test_a_sweep_finds_what_a_kill_left(
    calque: Calque, spawn: Spawn, folder: Path, proxy: FaultProxy, root: str
) -> None:
    """Killed with a part on its way: the upload is found, and gone after the sweep; the same
    command then copies all of it."""
    (folder / "many").mkdir()
    (folder / "many" / "big").write_bytes(bytes(12 * 1024 * 1024))

    def is_part(each: Exchange) -> bool:
        return "partNumber=" in each.target and "partNumber=10000" not in each.target

    proxy.add(Fault(method="PUT", where=is_part, times=None, delay=600.0))
    command = ("cp", "-r", "many/", f"{root}/", *OPTIONS, "--chunk", "5MiB")
    process = spawn(*command)
    while not any(map(is_part, list(proxy.log))) and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    proxy.reset()
    sweep = ("sweep", f"{root}/", "--older-than", "0s", "--json", *OPTIONS)
    assert len(json.loads(calque(*sweep, "--dry-run").stdout)) == 1
    assert calque(*sweep).returncode == 0
    assert json.loads(calque(*sweep, "--dry-run").stdout) == []
    done = calque(*command)
    assert done.returncode == 0, done.stderr
    assert json.loads(calque(*sweep, "--dry-run").stdout) == []
    assert calque("check", "many/", f"{root}/", "--download", *OPTIONS).returncode == 0


def test_a_sweep_finds_files_that_a_kill_left(calque: Calque, spawn: Spawn, folder: Path) -> None:
    """A file written aside, of a run that was killed before it could have its name."""
    (folder / "many").mkdir()
    (folder / "many" / "big").write_bytes(os.urandom(24 * 1024 * 1024))
    process = spawn("cp", "-r", "many/", "copy", "--bandwidth", "1MB")
    left: list[Path] = []
    while not left and process.poll() is None:
        time.sleep(0.02)
        left = list(folder.rglob(".calque-*"))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert [each for each in left if each.exists()]
    assert calque("sweep", "copy", "--older-than", "0s").returncode == 0
    assert list(folder.rglob(".calque-*")) == []
    assert calque("cp", "-r", "many/", "copy").returncode == 0
    assert calque("check", "many/", "copy", "--download").returncode == 0
