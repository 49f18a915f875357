"""The reference is made from the code, and nothing of the code is missing in it."""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cache

import pytest
from docs.generate.command_reference import list_commands, render_commands
from docs.generate.python_reference import find_values, public_members, render_python
from docs.generate.settings_reference import render_settings

import calque
from calque.cli.main import COMMANDS
from calque.cli.settings_file import list_keys
from tests.command import run_command_text


@cache
def section(heading: str) -> str:
    """The part of the page of commands below a heading, up to the next one."""
    found = re.search(
        rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", render_commands(), re.DOTALL | re.MULTILINE
    )
    assert found, f"{heading} has no section"
    return found[1]


def test_every_command_has_its_section() -> None:
    """Those of the table, and those below ``calque store``, ``jobs`` and ``ledger``."""
    shown = {path for path, _ in list_commands()}
    assert {f"calque {name}" for name in COMMANDS} <= shown
    assert {"calque store init", "calque store s3-key revoke", "calque jobs resume"} <= shown
    for path in shown:
        assert section(path)


@pytest.mark.parametrize(
    "words", ["", "cp", "sync", "load", "serve", "store access", "store s3-key make", "ledger show"]
)
def test_every_flag_that_help_tells_is_told(words: str) -> None:
    """What ``--help`` of the real command lists stands in its section."""
    told = run_command_text(*words.split(), "--help", env={"COLUMNS": "200", "TERM": "dumb"})
    flags = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", told.stdout.partition("Options")[2]))
    assert flags
    below = section(f"calque {words}".strip())
    assert [flag for flag in flags - {"--help"} if f"`{flag}`" not in below] == []


def test_every_flag_of_every_command_is_told_with_words() -> None:
    """None is hidden from the page, and of none is there nothing to say."""
    silent = []
    for path, command in list_commands():
        assert "]..." not in section(path), path
        for parameter in command.params:
            for name in [*parameter.opts, *parameter.secondary_opts]:
                if name.startswith("-") and name != "--help":
                    assert f"`{name}`" in section(path), f"{path} {name}"
            if parameter.param_type_name == "option" and not parameter.help:
                silent.append(f"{path} {parameter.opts[0]}")
    assert silent == []


def test_every_key_is_told() -> None:
    """A row of each key of calque.toml: its default, its variable and its words; and no other."""
    rows = [line for line in render_settings().splitlines() if line.startswith("| `")]
    cells = {row.split("`")[1]: row for row in rows}
    for key in list_keys():
        row = cells[key.name]
        assert key.meaning
        assert key.meaning in row
        if key.default not in (None, {}):
            assert f"`{key.default}`" in row
        if key.variable:
            assert f"`{key.variable}`" in row
    assert cells.keys() == {key.name for key in list_keys()}


def test_every_public_name_is_told() -> None:
    """Functions and classes of the public face with what they promise; methods of the classes."""
    page = render_python()
    for name in calque.__all__:
        if not name.startswith("_"):
            assert re.search(rf"^##+ calque\.{name}$", page, re.MULTILINE), name
            assert getattr(calque, name).__doc__, f"{name} has no docstring"
    for kind in (calque.Operator, calque.Copier, calque.AsyncOperator, calque.Checkpoint):
        for member, _ in public_members(kind):
            assert f"#### {kind.__name__}.{member}\n" in page


def test_what_functions_give_is_told_too() -> None:
    """Reports, the project of a store, metadata: with every field and method."""
    page = render_python()
    public = [getattr(calque, name) for name in calque.__all__ if name not in ("errors",)]
    values = find_values([it for it in public if inspect.isclass(it) or inspect.isfunction(it)])
    names = {f"{kind.__module__}.{kind.__name__}" for kind in values}
    assert {
        "calque.loader.report.Report",
        "calque.transfer.report.report.Report",
        "calque.transfer.request.keywords.TreeKeywords",
        "calque.store.project.Project",
        "calque.values.metadata.Metadata",
    } <= names
    for kind in values:
        below = page.partition(f"\n### {kind.__module__}.{kind.__name__}\n")[2].partition("\n### ")[
            0
        ]
        assert below.strip(), kind
        shown = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        assert [
            one.name for one in shown if one.name[0] != "_" and f"`{one.name}`" not in below
        ] == []


def test_every_error_is_told() -> None:
    """A row for each class of ``calque.errors``."""
    page = render_python()
    kinds = [it for it in vars(calque.errors).values() if inspect.isclass(it)]
    ours = [it for it in kinds if it.__module__ == "calque.errors" and issubclass(it, Exception)]
    assert len(ours) > 10
    assert [it.__name__ for it in ours if f"| `{it.__name__}` |" not in page] == []
