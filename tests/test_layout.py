"""Where tests lie, and that no module is without one.

A module is tried by a test of its own name, or by tests of behaviours in the folder of ``tests``
that has the name of its package. The second is read off the imports: what those tests import of the
package, and what that imports within it, the strings of registries included.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.schedule import LONGEST

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
SOURCE = ROOT / "src"
NOT_PACKAGES = {
    "servers": "what tests are run against",
    "test_servers": "tests of those servers",
    "documentation": "pages for users, which are done as they say",
    "store_client": "the store as its users see it, through uplink and command line",
}
"""Folders of tests that are named by something else than a package."""

FOLDERS_OF = {
    "store": ("store", "store_client"),
    "child_process": (".",),
    "config": (".",),
    "late_module": (".",),
    "notebook": (".",),
    "ticker": (".",),
    "tracing": (".",),
    "errors": (".",),
}
"""Where a package is tried, when it is not, or not only, in the folder of its name."""

TRIED_BY = {
    "calque.spark.strict_session": "test_select.py",  # by statements that transform rows
    "calque.spark.job_errors": "test_spark_failures.py",  # by Spark that fails for real
    "calque.store.service": "cases/calque.py",  # by the behaviour suite of all services
}
"""Modules and packages that other tests than those of their package try."""


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return name.removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    """Every module of ours but generated code and migrations, which other tests compare."""
    return {
        module_name(path): path
        for path in sorted((SOURCE / "calque").rglob("*.py"))
        if not {"pb", "migrations"} & set(path.parts)
    }


def strings_of(tree: ast.Module) -> Iterator[str]:
    """Strings, and f-strings in which constants of the module are filled in."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else constants.get(getattr(part.value, "id", ""), "?")
                for part in node.values
                if isinstance(part, (ast.Constant, ast.FormattedValue))
            )


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


@cache
def uses(path: Path) -> frozenset[str]:
    """The modules of ours that a file imports or names in a string, and the packages above."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {text.partition(":")[0] for text in strings_of(tree)}
    found = {name for name in {*imported(tree), *said} if name in modules()}
    # A registry that fills in a name, as the table of commands does, names the whole package.
    packages = tuple(text.removesuffix("?") for text in said if text.endswith(".?"))
    found |= {name for name in modules() if packages and name.startswith(packages)}
    found |= {f"{name}.__main__" for name in found} & modules().keys()
    parts = [name.split(".") for name in found]
    return frozenset(".".join(one[:end]) for one in parts for end in range(2, len(one) + 1))


def reached(package: str, files: Iterable[Path]) -> set[str]:
    """What these files use of a package, and what that uses of it."""
    waiting = [name for path in files for name in uses(path)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name.split(".")[1] == package and name not in seen:
            seen.add(name)
            waiting.extend(uses(modules()[name]))
    return seen


def files_that_try(package: str) -> list[Path]:
    """The files of the folders in which a package is tried."""
    folders = FOLDERS_OF.get(package, (package,))
    return sorted(
        path
        for name in folders
        for path in ((TESTS / name).glob("*.py") if name == "." else (TESTS / name).rglob("*.py"))
    )


PACKAGES = sorted(
    {name.split(".")[1] for name in modules() if "." in name}
    - {"_version", "faults"}  # a number; steps at which tests of every package stop a process
)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_has_a_namesake_or_is_tried_by_the_tests_of_its_package(package: str) -> None:
    """Nothing is installed that no test of its own package comes by."""
    files = files_that_try(package)
    namesakes = {path.stem.removeprefix("test_") for path in files}
    tried = reached(package, files)
    missing = [
        name
        for name in modules()
        if name.split(".")[1:2] == [package]
        and name.rpartition(".")[2] not in namesakes
        and name not in tried
        and not any(f"{name}.".startswith(f"{one}.") for one in TRIED_BY)
    ]
    assert missing == []


def test_tests_that_are_named_are_there() -> None:
    """A module that is tried elsewhere is named with a test that exists, and exists itself."""
    assert TRIED_BY.keys() - modules().keys() == set()
    assert [name for name in TRIED_BY.values() if not list(TESTS.rglob(name))] == []


def test_folders_of_tests_have_the_names_of_packages() -> None:
    """Who knows where a module lies knows where its tests lie."""
    folders = {path.name for path in TESTS.iterdir() if (path / "__init__.py").is_file()}
    packages = {path.name for path in (SOURCE / "calque").iterdir() if path.is_dir()}
    assert folders - packages - NOT_PACKAGES.keys() == set()
    assert NOT_PACKAGES.keys() - folders == set()


TEST_FILES = sorted(TESTS.rglob("test_*.py"))


def test_every_test_says_what_must_hold() -> None:
    """Each file and each test of it opens with a docstring."""
    silent = []
    for path in TEST_FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [
            node
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.name.startswith("test_")
        ]
        where = path.relative_to(ROOT).as_posix()
        silent += [where] if not ast.get_docstring(tree) else []
        silent += [f"{where}::{node.name}" for node in named if not ast.get_docstring(node)]
    assert silent == []


def test_what_is_installed_is_calque_and_nothing_else(tmp_path: Path) -> None:
    """The wheel has the package whole, with its typing mark, and none of the servers of tests."""
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"calque"}
    inside = {name for name in names if name.startswith("calque/")}
    kept = subprocess.run(
        ["git", "ls-files", "src/calque"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert inside == {name.removeprefix("src/") for name in kept.stdout.split()}
    assert "calque/py.typed" in inside
    assert not [name for name in inside if "testing" in name or "test_" in name]


def test_files_that_start_first_are_there() -> None:
    """A file that was moved is moved in the schedule of the tests too."""
    assert [name for name in LONGEST if not (TESTS / name).is_file()] == []
