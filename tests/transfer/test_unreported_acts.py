"""Runs that are killed between a delete, or a move, and its row: whoever resumes writes the row."""

from __future__ import annotations

import json
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from calque.errors import Unavailable
from calque.ledger import open_ledger
from calque.ledger.job_progress import acts_of, copies_of
from calque.ledger.jobs import list_jobs
from calque.operator import Operator
from calque.transfer.report.report_file import read_report
from tests.ledger.conftest import make_ledger
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Exchange, Fault, FaultProxy
from tests.servers.seaweedfs import S3Server
from tests.servers.shared import shared_azurite
from tests.transfer.conftest import MakeTree, Tree, files_of, objects_of, s3_options
from tests.transfer.killed_run import Child

KEPT: Tree = {f"k/{number:02}": b"kept" for number in range(3)}
GONE: Tree = {f"d{number % 3}/{number:02}": b"x" * number for number in range(45)}


class Places:
    """Two trees, ``from`` and ``to``, of one service, and what lies in them."""

    def __init__(self, tmp_path: Path, make_tree: MakeTree, cloud: Operator | None) -> None:
        self._root = tmp_path
        self._make_tree = make_tree
        self._cloud = cloud

    def fill(self, name: str, content: Tree) -> None:
        if self._cloud is None:
            self._make_tree(name, content)
            return
        for path, data in content.items():
            self._cloud.write(f"{name}/{path}", data)

    def at(self, name: str) -> str:
        return f"{self._root / name}/" if self._cloud is None else self._cloud.location(f"{name}/")

    def names(self, name: str) -> set[str]:
        """Names alone: requests of a killed process may still be under way at the server."""
        if self._cloud is None:
            return set(files_of(self._root / name))
        return {entry.path.partition("/")[2] for entry in self._cloud.list(f"{name}/")}

    def content(self, name: str) -> Tree:
        if self._cloud is None:
            return files_of(self._root / name)
        found = objects_of(self._cloud)
        cut = len(name) + 1
        return {path[cut:]: data for path, data in found.items() if path.startswith(f"{name}/")}


@pytest.fixture(params=["fs", "s3", "azblob"])
def places(
    request: pytest.FixtureRequest, tmp_path: Path, make_tree: MakeTree
) -> tuple[Places, dict[str, object]]:
    """Trees on files, and on servers; with the options by which they are reached."""
    if request.param == "fs":
        return Places(tmp_path, make_tree, None), {}
    if request.param == "azblob":
        try:
            azurite = shared_azurite()
        except Unavailable as error:
            pytest.skip(f"Azurite cannot be had: {error}")
        azurite.make_container("calquetest", "acts")
        service: dict[str, object] = {
            "account": "calquetest",
            "key": azurite.keys["calquetest"],
            "endpoint": azurite.endpoint("calquetest"),
        }
        blobs = Operator.from_uri(f"az://acts/{uuid.uuid4().hex[:12]}", **service)
        return Places(tmp_path, make_tree, blobs), service
    server: S3Server = request.getfixturevalue("tree_bucket")
    return Places(tmp_path, make_tree, request.getfixturevalue("s3")), s3_options(server)


def announced(state: Path, url: str | None = None) -> int:
    """How many acts the one job that there is has announced."""
    with open_ledger(url or state / "calque" / "ledger.db") as ledger:
        (job,) = list_jobs(ledger)
        return len(acts_of(ledger, job.job_id))


@pytest.mark.parametrize("report", ["report.csv", None])
def test_a_sync_that_deletes(
    places: tuple[Places, dict[str, object]], tmp_path: Path, state: Path, report: str | None
) -> None:
    """Killed when some of a batch are gone and nothing was told, and again: each object that went
    has one row, and without rows the counts are right."""
    trees, service = places
    trees.fill("from", KEPT)
    trees.fill("to", {**KEPT, **GONE})
    file = None if report is None else tmp_path / report
    ends = (trees.at("from"), trees.at("to"))
    limits = {"delete": True, "max_delete": "100%"}
    child = Child(state, *ends, kind="sync", report=file, service=service, **limits)  # type: ignore[arg-type]
    assert child.run("tree.deleted@1:kill").returncode == -signal.SIGKILL
    assert len(trees.names("to")) < 48
    if file is not None:
        assert child.run("journal.note@1:kill").returncode == -signal.SIGKILL
    totals = child.finish()["totals"]
    assert isinstance(totals, dict)
    assert totals["deleted"] == {"objects": 45, "bytes": sum(map(len, GONE.values()))}
    assert announced(state) == 0
    if file is not None:
        assert Counter(row.path for row in read_report(file)) == Counter([*KEPT, *GONE])


def test_a_removal(places: tuple[Places, dict[str, object]], tmp_path: Path, state: Path) -> None:
    """``rm -r`` is a job as well: killed among its rows, the same command goes on with it."""
    trees, service = places
    trees.fill("from", {**KEPT, **GONE})
    file = tmp_path / "report.jsonl"
    child = Child(state, trees.at("from"), "", kind="rm", report=file, service=service)
    assert child.run("tree.deleted@20:kill").returncode == -signal.SIGKILL
    told = child.finish()
    assert (told["resumed"], told["exit_code"]) == (True, 0)
    assert trees.content("from") == {}
    assert Counter(row.path for row in read_report(file)) == Counter([*KEPT, *GONE])
    assert {row.outcome for row in read_report(file)} == {"deleted"}


@pytest.mark.parametrize("report", ["report.parquet", None])
def test_a_move(
    places: tuple[Places, dict[str, object]], tmp_path: Path, state: Path, report: str | None
) -> None:
    """A source that was moved, renamed or copied and deleted, has one row, with what it became."""
    trees, service = places
    trees.fill("from", {**KEPT, **GONE})
    file = None if report is None else tmp_path / report
    ends = (trees.at("from"), trees.at("to"))
    child = Child(state, *ends, kind="mv", report=file, service=service, concurrent=4)
    for fault in ("tree.moved@1", "tree.moved@30"):
        assert child.run(f"{fault}:kill").returncode == -signal.SIGKILL
    assert trees.names("from") | trees.names("to") == {**KEPT, **GONE}.keys()
    with open_ledger(state / "calque" / "ledger.db") as ledger:
        (job,) = list_jobs(ledger)
        assert copies_of(ledger, job.job_id) == {}  # small ones are known by their ranges
    totals = child.finish()["totals"]
    assert isinstance(totals, dict)
    assert totals["copied"]["objects"] + totals["up_to_date"]["objects"] == 48
    assert (trees.content("from"), trees.content("to")) == ({}, {**KEPT, **GONE})
    if file is not None:
        rows = list(read_report(file))
        assert Counter(row.path for row in rows) == Counter([*KEPT, *GONE])
        sizes = {path: len(data) for path, data in {**KEPT, **GONE}.items()}
        assert {row.path: row.target_size for row in rows} == sizes


@pytest.mark.parametrize("places", ["s3", "azblob"], indirect=True)
@pytest.mark.parametrize("visit", [1, 2], ids=["in the target", "in the source"])
def test_a_look_that_was_left(
    places: tuple[Places, dict[str, object]], tmp_path: Path, state: Path, visit: int
) -> None:
    """What a move puts into both trees to see that they are two is nobody's object: killed at that
    moment, the resume removes it and moves it nowhere."""
    trees, service = places
    trees.fill("from", KEPT)
    file = tmp_path / "report.jsonl"
    ends = (trees.at("from"), trees.at("to"))
    child = Child(state, *ends, kind="mv", report=file, service=service)
    assert child.run(f"tree.look@{visit}:kill").returncode == -signal.SIGKILL
    assert len(trees.names("from") | trees.names("to")) == len(KEPT) + 1
    totals = child.finish()["totals"]
    assert isinstance(totals, dict)
    assert totals["copied"]["objects"] + totals["up_to_date"]["objects"] == len(KEPT)
    assert (trees.content("from"), trees.content("to")) == ({}, KEPT)
    assert Counter(row.path for row in read_report(file)) == Counter([*KEPT])


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is, if not where it is by itself."""
    if request.param == "sqlite":
        yield None
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    made = server.prepared(make_ledger)
    yield made
    server.drop(made)


STEPS = {
    "mv": (
        "tree.listed",
        "tree.look",
        "tree.copied",
        "tree.moved",
        "tree.told",
        "journal.note",
        "job.ends",
    ),
    "rm": ("tree.deleted", "journal.note", "job.ends"),
    "sync": ("tree.listed", "tree.deleted", "journal.note", "job.ends"),
}
MOST = {"tree.listed": 3, "tree.look": 2, "journal.note": 3, "job.ends": 1}


def kill_again_and_again(
    places: tuple[Places, dict[str, object]],
    ledger_url: str | None,
    tmp_path: Path,
    kind: str,
    seed: int,
) -> None:
    """Up to four processes die at chosen visits; whoever comes last tells all, once."""
    trees, service = places
    state, chance = tmp_path / "state", Random(f"{kind}-{seed}")
    trees.fill("from", KEPT if kind == "sync" else {**KEPT, **GONE})
    if kind == "sync":
        trees.fill("to", {**KEPT, **GONE})
    file = tmp_path / "report.jsonl" if seed % 2 else None
    ends = (trees.at("from"), "" if kind == "rm" else trees.at("to"))
    limits = {"delete": True, "max_delete": "100%"} if kind == "sync" else {}
    environment = {} if ledger_url is None else {"CALQUE_LEDGER_URL": ledger_url}
    child = Child(
        state, *ends, kind=kind, report=file, service=service, environment=environment,
        concurrent=chance.choice([1, 4]), **limits,
    )  # type: ignore[arg-type]  # fmt: skip
    died = []
    for _ in range(chance.randint(1, 4)):
        step = chance.choice(STEPS[kind])
        died.append(f"{step}@{chance.randint(1, MOST.get(step, 40))}")
        ended = child.run(f"{died[-1]}:kill")
        if ended.returncode == 0:
            break  # it was over before it came to that step
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    else:
        ended = child.run()
        assert ended.returncode == 0, (died, ended.stderr)
    totals = json.loads(ended.stdout)["totals"]
    done = {name: totals[name]["objects"] for name in ("copied", "up_to_date", "deleted")}
    assert sum(done.values()) == len(KEPT) + len(GONE), (died, totals)
    assert trees.content("from") == (KEPT if kind == "sync" else {})
    if kind != "rm":
        assert trees.content("to") == (KEPT if kind == "sync" else {**KEPT, **GONE})
    assert announced(state, ledger_url) == 0
    if file is not None:
        told = Counter(row.path for row in read_report(file))
        assert told == Counter([*KEPT, *GONE]), died


@pytest.mark.parametrize("kind", STEPS)
def test_killed_again_and_again(
    places: tuple[Places, dict[str, object]], tmp_path: Path, kind: str
) -> None:
    """Whatever dies when: each object has one row, or is counted once, and nothing is left to tell
    in the journal."""
    kill_again_and_again(places, None, tmp_path, kind, 1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", STEPS)
def test_killed_at_many_steps(
    places: tuple[Places, dict[str, object]],
    ledger_url: str | None,
    tmp_path: Path,
    kind: str,
    seed: int,
) -> None:
    """The same at many seeded steps, with the ledger in either database."""
    kill_again_and_again(places, ledger_url, tmp_path, kind, seed)


class LateDelete:
    """Before a server: holds the delete of one object back until a later process has looked whether
    the object is there, and is about to list."""

    def __init__(self, proxy: FaultProxy, server: Operator, path: str) -> None:
        self._server = server
        self._path = path
        self.is_held = threading.Event()
        self._released = threading.Event()
        self._looked = False
        proxy.add(Fault(method="DELETE", contains=path, hook=self._hold))
        proxy.add(Fault(method="HEAD", contains=path, times=None, hook=self._note_look))
        proxy.add(Fault(method="GET", contains="list-type", times=None, hook=self._arrive))

    def _hold(self, _: Exchange) -> None:
        self.is_held.set()
        self._released.wait(100)

    def _note_look(self, _: Exchange) -> None:
        self._looked = self.is_held.is_set()

    def _arrive(self, _: Exchange) -> None:
        if self._looked:
            self.release()

    def release(self) -> None:
        """Let it through, and wait for what it does."""
        self._released.set()
        for _ in range(1000):
            if not self._server.exists(self._path):
                return
            time.sleep(0.02)


@pytest.mark.parametrize("report", [True, False])
@pytest.mark.parametrize("kind", ["mv", "sync", "rm"])
def test_a_delete_that_arrives_late(
    s3: Operator, tree_bucket: S3Server, tmp_path: Path, state: Path, kind: str, report: bool
) -> None:
    """Whoever resumes has looked, and found the object; then the delete of the killed process is
    done: it has its row all the same, or is counted."""
    objects = {f"{number:02}": b"x" * number for number in range(4)}
    held = "to/02" if kind == "sync" else "from/02"
    for path, content in objects.items():
        s3.write(f"{'to' if kind == 'sync' else 'from'}/{path}", content)
    if kind == "sync":
        s3.write("from/kept", b"1")
    file = tmp_path / "rows.jsonl" if report else None
    with FaultProxy(tree_bucket.endpoint) as proxy:
        late = LateDelete(proxy, s3, held)
        limits = {"delete": True, "max_delete": "100%"} if kind == "sync" else {}
        service = {**s3_options(tree_bucket), "endpoint_url": proxy.endpoint}
        ends = (s3.location("from/"), "" if kind == "rm" else s3.location("to/"))
        child = Child(state, *ends, kind=kind, report=file, service=service, concurrent=1, **limits)  # type: ignore[arg-type]
        with child.spawn() as process:
            assert late.is_held.wait(100)
            process.kill()
        try:
            totals = child.finish()["totals"]
        finally:
            late.release()
    assert isinstance(totals, dict)
    done = {name: totals[name]["objects"] for name in ("copied", "up_to_date", "deleted")}
    assert sum(done.values()) == (5 if kind == "sync" else 4), done
    if file is not None:
        wanted = [*objects, "kept"] if kind == "sync" else [*objects]
        rows = list(read_report(file))
        assert Counter(row.path for row in rows) == Counter(wanted)
        assert {row.outcome for row in rows} <= {"copied", "up to date", "deleted"}


@pytest.mark.parametrize("kind", ["mv", "rm"])
def test_a_folder_that_is_gone_with_a_report_beside_it(tmp_path: Path, kind: str) -> None:
    """Killed when nothing was left to do: what was named is gone, and a report beside it is not
    taken for one that lies in it."""
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "file").write_bytes(b"1")
    file = tmp_path / "folder.jsonl"
    places = (tmp_path / "state", str(tmp_path / "folder"), str(tmp_path / "to"))
    child = Child(*places, kind=kind, report=file)
    # The last note of all: those in between are too many to be counted.
    assert child.run("job.ends:kill").returncode == -signal.SIGKILL
    assert not (tmp_path / "folder").exists()
    assert child.finish()["resumed"]
    assert [row.path for row in read_report(file)] == ["deep/file"]
