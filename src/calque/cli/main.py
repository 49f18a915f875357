"""The command ``calque``: a table of commands, each imported when it is called."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from calque._version import __version__
from calque.cli.flags.plain_values import spare_checks
from calque.cli.help_page import help_page
from calque.cli.logs import LogForm, set_up_logs
from calque.cli.output import FAILED, USAGE, as_json, code_of, say
from calque.cli.traces import are_wanted, traced
from calque.errors import CalqueError

if TYPE_CHECKING:  # no public name of Typer's, and older ones have it elsewhere
    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter

COMMANDS = {
    "cp": "Copy an object, or with -r a tree: atomically, with progress, resumable.",
    "mv": "Move an object, or with -r a tree: renamed where possible, else copied and deleted.",
    "sync": "Make a tree like another: what changed is copied, nothing else.",
    "ls": "List objects in key order.",
    "check": "Compare two trees; nothing is changed.",
    "du": "Count objects and bytes, folder by folder.",
    "stat": "Show what is known of an object.",
    "cat": "Write an object's bytes to standard output.",
    "rm": "Delete objects, or with -r trees.",
    "mkdir": "Make a folder.",
    "presign": "A URL by which anybody may read, or write, an object for a while.",
    "sweep": "Remove what killed copies left.",
    "jobs": "Runs over trees: under way, left unfinished, resumed.",
    "load": "Load staged files into a table, each exactly once.",
    "preview": "What a load would read: dialect, columns, first rows.",
    "sql": "Run a COPY INTO: Snowflake, Databend or Databricks spelling.",
    "tables": "The tables there are: of calque.toml, catalogs, the ledger.",
    "show": "A table: schema, rows, version, first rows.",
    "history": "The loads of a table: rows, errors, times, who.",
    "errors": "The rows that a load rejected, with their places.",
    "ledger": "What is remembered of a table: show, forget, rebuild.",
    "demo": "See it at work: real commands on real files, in two minutes.",
    "store": "Make a store in a folder, share it, look after it.",
    "serve": "Serve a store: S3 for every tool, a console for the browser.",
    "console": "Loads, errors and trees in a browser, without a store.",
    "init": "Write a calque.toml with every setting, its default, its words.",
    "config": "The settings in force, and where each came from.",
    "completion": "The script that completes calque in a shell.",
    "doctor": "What is installed, what is missing, what to do about it.",
}
"""Name → one-line help, in its order. Each is a module of ``commands`` that has an ``app``."""


class LazyGroup(TyperGroup):
    """Imports a command's module only when that command is run: ``calque ls`` pays for ``ls``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        spare_checks(self)
        if not args and not ctx.resilient_parsing:
            print(self.get_help(ctx))
            ctx.exit(USAGE)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Every command is told by its one line, and none need be imported for it."""
        usage = f"{ctx.command_path} {' '.join(self.collect_usage_pieces(ctx))}"
        records = (each.get_help_record(ctx) for each in self.get_params(ctx))
        options = [record for record in records if record is not None]
        formatter.write(help_page(usage, self.help or "", options, COMMANDS))

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in COMMANDS:
            return None
        summary = COMMANDS[cmd_name]
        if ctx.resilient_parsing:
            return TyperCommand(cmd_name, short_help=summary, help=summary)
        return _load(cmd_name)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from difflib import get_close_matches

            if alike := get_close_matches(args[0], COMMANDS, n=1):
                ctx.fail(f"No such command '{args[0]}'. Did you mean '{alike[0]}'?")
        name, command, rest = super().resolve_command(ctx, args)
        if name in COMMANDS and ctx.resilient_parsing:
            # A shell completes what comes after the command: its flags are needed, so it is read.
            with suppress(CalqueError, ImportError):  # without its extra there is nothing to offer
                command = _load(name)
        return name, command, rest


def module_of(name: str) -> str:
    """The module of a command."""
    return f"calque.cli.commands.{name}"


def _load(name: str) -> Command:
    command: Command = get_command(import_module(module_of(name)).app)
    command.name = name
    spare_checks(command)
    _keep_usage(command)
    return command


def _keep_usage(command: Command) -> None:
    """``SRC... DST`` as it is: newer versions of Typer would put braces and dots around it."""
    for parameter in command.params:
        words = parameter.metavar or ""
        if parameter.param_type_name == "argument" and "..." in words:
            words = words if parameter.required else f"[{words}]"
            parameter._usage_display_name = partial(str, words)  # type: ignore[attr-defined]
    for below in getattr(command, "commands", {}).values():
        _keep_usage(below)


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"calque {__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say what happens underneath, with tracebacks.")
    ] = False,
    log: Annotated[
        LogForm | None,
        typer.Option("--log", help="Log warnings, with times, as lines or as JSON."),
    ] = None,
) -> None:
    """Copy objects to objects and files into tables: atomic, exactly once, resumable.

    Examples:

    - `calque demo` shows it at work, on real files, in two minutes

    - `calque cp s3://bucket/big.bin s3://archive/ --resume` copies; stopped, it goes on later

    - `calque load s3://landing/sales/ --into ./warehouse/sales` loads each file once

    - `calque doctor` says what is installed and what is missing

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 partly done.
    """
    set_up_logs(verbose, log)
    if are_wanted():
        context.with_resource(traced(context.invoked_subcommand or "help"))


def run() -> None:
    """The entry point: every error becomes a message and an exit code."""
    arguments = sys.argv[1:]
    _replace_closed_streams()
    _escape_what_cannot_be_printed()
    try:
        try:
            app(arguments, prog_name="calque")
        finally:
            sys.stdout.flush()  # here, where a failure can still be told
    except SystemExit as stop:
        if stop.code == USAGE and "--json" in arguments:
            as_json({"error": _WRONG_USAGE})
        raise
    except CalqueError as error:
        sys.exit(_report(error, arguments))
    except OSError as error:
        sys.exit(_report_system(error, arguments))
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(130)


def _replace_closed_streams() -> None:
    """Streams that the process was begun without (``<&-``, ``>&-``), for which Python has None.

    Whoever reads or writes such a one gets the system's error, as from any other program; messages
    go nowhere.
    """
    for name, mode, closed in (
        ("stdin", "r", os.O_WRONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, closed), mode))  # noqa: SIM115


def _escape_what_cannot_be_printed() -> None:
    """A file name that is no UTF-8 is shown escaped (as JSON escapes it too), never a crash."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _report(error: CalqueError, arguments: list[str]) -> int:
    if "--json" in arguments:
        report = getattr(error, "report", None)  # of a load that was given up: file by file
        told = {} if report is None else {"report": report.to_json()}
        as_json({"error": _describe(error), **told})
    else:
        say(f"error: {error}", level=logging.ERROR)
    for note in getattr(error, "__notes__", ()):
        say(f"  note: {note}")
    if "-v" in arguments or "--verbose" in arguments:
        logging.getLogger("calque").debug("traceback", exc_info=error)
    return code_of(error)


def _report_system(error: OSError, arguments: list[str]) -> int:
    """What no command expects: mostly a standard output that is full, or a pipe that was closed."""
    if error.errno != errno.EPIPE:
        say(f"error: {error.strerror or error}", level=logging.ERROR)
        if "-v" in arguments or "--verbose" in arguments:
            logging.getLogger("calque").debug("traceback", exc_info=error)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush there
    return FAILED


_WRONG_USAGE = {
    "kind": "WrongUsage",
    "message": "the command cannot be called so; standard error says why",
    "hint": "See calque COMMAND --help.",
    "retryable": False,
}
"""What a program is told of flags that the command does not know, as people are by Typer."""


def _describe(error: CalqueError) -> dict[str, Any]:
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }
