"""The reference of the command line, read off the commands themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from typer.main import get_command

from calque.cli.main import COMMANDS, app

HEAD = """\
# The command line

Every command and every flag. This page is made from the code, and `calque COMMAND --help` tells
the same.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 partly done. `--json` prints one JSON document to
standard output and nothing else. What is said to people goes to standard error.
"""


def render_commands() -> str:
    """The page, in Markdown."""
    root = get_command(app)
    parts = [HEAD, "## calque", *_body("calque", root)]
    for path, command in list_commands():
        parts += [f"##{'#' * path.count(' ')} {path}", *_body(path, command)]
    return "\n\n".join(parts) + "\n"


def list_commands() -> Iterator[tuple[str, Any]]:
    """Every command below ``calque`` by its words, ``calque store init``, in the order of help."""
    root = get_command(app)
    context = root.make_context("calque", [], resilient_parsing=True)
    context.resilient_parsing = False  # now each is imported, flags and all
    for name in COMMANDS:
        yield from _walk(f"calque {name}", root.get_command(context, name))


def _walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _walk(f"{path} {name}", inner)


def _body(path: str, command: Any) -> Iterator[str]:
    yield f"```text\n{_usage(path, command)}\n```"
    yield from map(_paragraph, inspect.cleandoc(command.help or "").split("\n\n"))
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    for title, kind in (("argument", "argument"), ("flag", "option")):
        rows = [_row(each) for each in shown if each.param_type_name == kind]
        if rows:
            yield "\n".join([f"| {title} | what it is | default |", "|---|---|---|", *rows])


def _usage(path: str, command: Any) -> str:
    words = [path]
    if any(each.param_type_name == "option" for each in command.params):
        words.append("[FLAGS]")
    for each in command.params:
        if each.param_type_name == "argument":
            name = (each.metavar or each.name.upper()).strip("[]")
            words.append(name if each.required else f"[{name}]")
    if hasattr(command, "commands") or path == "calque":
        words.append("COMMAND")
    return " ".join(words)


def _paragraph(text: str) -> str:
    """A bare command line of a help text is shown as one."""
    if text.startswith("calque ") and "\n" not in text:
        return f"```text\n{text}\n```"
    return text


def _row(parameter: Any) -> str:
    named = [*parameter.opts, *parameter.secondary_opts]
    if parameter.param_type_name == "argument":
        named = [parameter.metavar or parameter.name.upper()]
    spelled = ", ".join(f"`{name}`" for name in named)
    if parameter.param_type_name == "option" and not parameter.is_flag:
        spelled += f" *{parameter.metavar or 'VALUE'}*"
    about = " ".join((parameter.help or "").split())
    if parameter.envvar:
        about += f" Environment: `{parameter.envvar}`."
    return f"| {_cell(spelled)} | {_cell(about.strip())} | {_default(parameter)} |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "needed"
    value = parameter.default
    if value is None or callable(value) or isinstance(value, Mapping) or value in ((), [], False):
        return ""
    if value is True:
        return f"`{parameter.opts[0]}`"
    if isinstance(value, (list, tuple)):
        return _cell(", ".join(f"`{one}`" for one in value))
    return _cell(f"`{value.value if isinstance(value, Enum) else value}`")


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
