"""What a command imports before it works: only what it needs, or every start pays for it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from calque.cli.commands.preview import preview
from calque.cli.main import COMMANDS
from calque.cli.store.audit import audit
from calque.cli.store.gc import gc
from calque.cli.store.repair import repair
from calque.loader.look.stage_preview import FIRST_ROWS
from calque.store.nodes.commit_window import COMMIT_WINDOW
from calque.store.nodes.trash import KEPT
from calque.store.upkeep.audit_sample import SLOTS
from calque.store.upkeep.node_states import GONE_AFTER

HEAVY = {
    "alembic", "azure", "boto3", "botocore", "cryptography", "deltalake", "duckdb", "google",
    "grpc", "numpy", "pyarrow", "pyiceberg", "pyspark", "sqlalchemy", "sqlglot",
}  # fmt: skip
"""Libraries of tables, databases and services: a tenth of a second each, or more."""

LISTING = """
import json, sys
from calque.cli.main import run
try:
    run()
except SystemExit as stop:
    code = stop.code
else:
    code = 0
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def imported_by(folder: Path, environment: dict[str, str], *arguments: str) -> set[str]:
    """The modules that a process of the command has when it is done."""
    done = subprocess.run(
        [sys.executable, "-c", LISTING, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code in (0, None), done.stderr
    return set(modules)


EACH_HELP = """
import json, os, sys
from calque.cli.main import run
for command in json.loads(sys.argv[1]):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        continue
    sys.argv = ["calque", *command.split(), "--help"]
    try:
        run()
    except SystemExit as stop:
        code = stop.code
    else:
        code = 0
    print(json.dumps([command, code, sorted(sys.modules)]), file=sys.stderr, flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def modules_of_help(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What every command has imported after its help: forks of one process that has imported what
    the command line itself needs, for that is the same for all of them."""
    folder = tmp_path_factory.mktemp("help")
    done = subprocess.run(
        [sys.executable, "-c", EACH_HELP, json.dumps(["", *COMMANDS])],
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
        capture_output=True,
        text=True,
        timeout=250,
    )
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('["')]
    assert all(code in (0, None) for _, code, _ in told), done.stderr
    return {command: set(modules) for command, _, modules in told}


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_no_work(modules_of_help: dict[str, set[str]], command: str) -> None:
    """``calque X --help`` reads flags: no library of X, and no layer below the flags."""
    modules = modules_of_help[command]
    assert modules & (HEAVY | {"asyncio", "rich.progress"}) == set()
    layers = {"databases", "gateway", "ledger", "loader", "operator", "spark", "store"}
    assert modules & {f"calque.{layer}" for layer in layers} == set()


def test_the_first_page_of_help_imports_no_rich(folder: Path, environment: dict[str, str]) -> None:
    """``calque --help`` is plain text: neither Rich nor what reads Markdown, nor pydantic."""
    modules = imported_by(folder, environment, "--help")
    assert modules & {"rich", "markdown_it", "pygments", "pydantic", "asyncio"} == set()


def test_a_copy_of_a_file_imports_no_table(folder: Path, environment: dict[str, str]) -> None:
    """``calque cp`` of a local file needs no SQL, no table, no SDK of a service; no Rich to show
    nothing, no pydantic to take words as they are, no event loop, nothing of trees but flags."""
    (folder / "a").write_bytes(b"data")
    modules = imported_by(folder, environment, "cp", "a", "b", "--quiet")
    assert (folder / "b").read_bytes() == b"data"
    assert modules & (HEAVY | {"asyncio", "pydantic", "rich", "opentelemetry"}) == set()
    assert not {each for each in modules if each.startswith("calque.transfer.plan")}
    assert "calque.operator" in modules  # else nothing would be shown


def test_a_load_with_nothing_to_do_imports_no_parser(
    folder: Path, environment: dict[str, str], calque: Any
) -> None:
    """No statement is parsed, no bar shown, no table of another kind opened, no step applied; no
    reader, writer or engine, and none of the Arrow that those work on."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("id,name\n1,x\n")
    words = ("load", "in/", "--into", "lake/t")
    assert calque(*words).returncode == 0
    modules = imported_by(folder, environment, *words)
    unused = {"alembic", "duckdb", "numpy", "pyarrow", "pyiceberg", "pyspark", "rich.progress"}
    assert modules & (unused | {"sqlglot"}) == set()
    unused_layers = ("calque.loader.run.formats", "calque.transfer")
    assert not {each for each in modules if each.startswith(unused_layers)}
    assert "deltalake" in modules  # else nothing would be shown


def test_a_dry_run_of_trees_imports_no_journal(folder: Path, environment: dict[str, str]) -> None:
    """What compares two trees and writes nothing needs no SQL; only a real run keeps a journal."""
    (folder / "a").mkdir()
    (folder / "a" / "x").write_bytes(b"data")
    for words in (("sync", "a/", "b/", "--dry-run"), ("cp", "-r", "a/", "b/", "--dry-run")):
        modules = imported_by(folder, environment, *words)
        assert modules & (HEAVY | {"asyncio", "pydantic", "rich.progress"}) == set()
        assert "calque.ledger.copied_objects" in modules  # what was copied before is asked for
    assert not (folder / "b").exists()


@pytest.mark.parametrize(
    ("command", "flag", "value"),
    [
        (preview, "rows", FIRST_ROWS),
        (audit, "slots", SLOTS),
        (repair, "gone_after", GONE_AFTER / timedelta(hours=1)),
        (gc, "window", COMMIT_WINDOW / timedelta(hours=1)),
        (gc, "empty_after", KEPT / timedelta(days=1)),
    ],
)
def test_a_default_is_that_of_the_library(command: Any, flag: str, value: float) -> None:
    """A default is written out in the flags, to import nothing for it; both are the same."""
    assert inspect.signature(command).parameters[flag].default == value
