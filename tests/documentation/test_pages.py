"""All that a page shows is done, in order, in a folder of its own: commands, Python, files."""

from __future__ import annotations

import os
import re
import runpy
import sys
import tomllib
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from calque.spark.session import SparkOptions, session
from tests.documentation.blocks import KINDS, ROOT, Block, blocks_of, commands_of, pages
from tests.documentation.reader import Reader
from tests.operator.services.s3.server import make_bucket
from tests.servers.process import free_ports
from tests.servers.seaweedfs import S3Server

DOCS = ROOT / "docs"
STAND_INS = Path(__file__).parent / "stand_ins"


@dataclass(frozen=True)
class Scene:
    """What is there before a page begins: files, buckets, what commands made; names of Python.

    ``instead`` is what is said in the place of a name that this machine does not have; ``HOME`` in
    it is the reader's own.
    """

    files: Mapping[str, str | bytes] = field(default_factory=dict)
    buckets: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    has_spark: bool = False


SITE = {f"site/{name}": name for name in ("index.html", "css/a.css", "img/b.png", "c.tmp")}
REPORT = {"report/a.csv": "1,2\n", "report/b.csv": "3,4\n"}
SALES = {"landing/a.csv": "id,amount\n1,9.50\n2,3.20\n"}
STAGED = ("calque cp landing/a.csv s3://landing/sales/a.csv --stream",)
CLUSTER = {"spark://cluster:7077": "local[2]"}
FOLDER = {'"landing/"': '"HOME/work/landing/"'}
"""A JVM that runs already has a working directory of its own."""
DISKS = {"/disk": "HOME/disk"}
NODES = " ".join(f"--node /disk{number}" for number in range(1, 5))

SCENES = {
    "cli-objects.md": Scene({"report.csv": "id,amount\n1,10\n", "big.bin": b"x" * 1_000_000}),
    "console.md": Scene(instead={"8080": str(free_ports(1)[0])}),
    "formats.md": Scene(SALES, instead=FOLDER, has_spark=True),
    "ledger.md": Scene(SALES),
    "load.md": Scene(SALES, ("landing", "warehouse"), STAGED),
    "watching.md": Scene({**SALES, **SITE}),
    "s3.md": Scene(
        SALES,
        ("landing", "bucket"),
        ("calque cp landing/a.csv s3://landing/sales/2026/big.parquet --stream",),
        {"http://localhost:9000": "ENDPOINT"},
    ),
    "store.md": Scene({"a.jpg": b"light" * 50_000}, ("spare",), instead=DISKS),
    "tree-jobs.md": Scene(SITE | {"site/drafts/new.html": "new"}),
    "trees.md": Scene(SITE),
    "upkeep.md": Scene(before=(f"calque store init ./data --pieces 2/3 {NODES}",), instead=DISKS),
    "quickstart/objects.md": Scene(buckets=("www",)),
    "how-to/sync-two-buckets.md": Scene(buckets=("data", "copy")),
    "how-to/run-on-a-cluster.md": Scene(REPORT, ("data", "copy"), instead=CLUSTER),
    "how-to/move-from-rclone.md": Scene(REPORT, ("data",)),
    "how-to/schedule.md": Scene({"bin/dbt": "#!/bin/sh\n"}, ("copy",)),
}
"""Pages that find something there; all others begin in an empty folder."""

RUN_ELSEWHERE = {
    "azure.md": "operator/services/azblob/test_docs.py",
    "first-hour.md": "documentation/test_first_hour.py",
    "fsspec.md": "store_client/test_filesystem.py",
    "gateway.md": "gateway/test_gateway_doc.py",
    "gcs.md": "operator/services/gcs/test_docs.py",
    "operator.md": "operator/test_docs.py",
}
"""Pages that need what only the tests of their package have."""

HERE = [
    name
    for name in (page.relative_to(DOCS).as_posix() for page in pages())
    if name not in RUN_ELSEWHERE and any(block.kind != "text" for block in blocks_of(DOCS / name))
]


@pytest.fixture(scope="session")
def spark() -> Any:
    """One session for all pages that have one."""
    return session(options=SparkOptions(master="local[2]"))


@pytest.mark.parametrize("name", HERE)
def test_what_a_page_shows_is_true(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Commands end as it says and print what it shows, Python runs, settings are settings."""
    scene = SCENES.get(name, Scene())
    with reader(scene, tmp_path, request) as one:
        if scene.has_spark:
            one.names["spark"] = request.getfixturevalue("spark")
        for command in scene.before:
            one.follow(Block("console", None, f"$ {command}\n", 0))
        for block in blocks_of(DOCS / name):
            one.follow(block)


@contextmanager
def reader(scene: Scene, home: Path, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """A reader with the files and the buckets of a scene, and a home of their own."""
    folder = home / "work"
    folder.mkdir()
    for path, content in scene.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        (folder / path).write_bytes(data)
        (folder / path).chmod(0o755 if path.startswith("bin/") else 0o644)
    path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("CALQUE_")},
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "PATH": path,
    }
    instead = {theirs: ours.replace("HOME", str(home)) for theirs, ours in scene.instead.items()}
    if scene.buckets:
        server: S3Server = request.getfixturevalue("seaweed")
        environment |= server.environment
        for name in scene.buckets:
            ours = f"{name}-{uuid.uuid4().hex[:12]}"
            make_bucket(server, ours)
            instead[f"s3://{name}/"] = f"s3://{ours}/"
        instead = {name: it.replace("ENDPOINT", server.endpoint) for name, it in instead.items()}
    made = Reader(folder, environment, instead)
    try:
        yield made
    finally:
        made.leave()


def test_there_is_no_block_that_nothing_knows() -> None:
    """Each has a kind, and commands and Python stand under theirs: nothing is passed over."""
    wrong = [
        f"{page.relative_to(ROOT)}:{block.line} {block.kind}"
        for page in pages()
        for block in blocks_of(page)
        if block.kind not in KINDS
        or (block.kind == "console" and not list(commands_of(block)))
        or (block.kind == "text" and re.search(r"^(\$ )?calque [a-z]", block.text, re.MULTILINE))
    ]
    assert wrong == []


def test_every_extra_is_told() -> None:
    """The table of the page on installing names each, and none that is not there."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| (`.*?) \|", (DOCS / "install.md").read_text("utf-8"), re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert told == set(settings["project"]["optional-dependencies"])


def test_pages_that_are_run_elsewhere_are() -> None:
    """The test that is named is there, and speaks of the page."""
    for page, test in RUN_ELSEWHERE.items():
        assert (DOCS / page).is_file()
        assert f'"{page}"' in (ROOT / "tests" / test).read_text(encoding="utf-8")


def test_flows_of_other_tools_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files for Airflow and Dagster run, with the names of those tools stood in for."""
    files = {block.title: block for block in blocks_of(DOCS / "how-to/schedule.md") if block.title}
    monkeypatch.syspath_prepend(STAND_INS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Reader(tmp_path, {}).follow(files["landing/a.csv"])
    for name in ("dags/sales.py", "assets.py"):
        Reader(tmp_path, {}).follow(files[name])
    runpy.run_path("dags/sales.py")
    assert Path("copy/lake/sales/_delta_log").is_dir()
    found = runpy.run_path("assets.py")["sales"]().metadata
    assert found == {"rows": 0, "files": 0, "table_version": found["table_version"]}
