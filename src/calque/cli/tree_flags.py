"""The flags that all commands over trees share, and what they come to."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, get_type_hints

import typer

from calque.cli.quantities import parse_duration, parse_size
from calque.errors import InvalidInput
from calque.transfer.filters import Filters, Rule
from calque.transfer.names_file import read_names
from calque.transfer.report_file import parse_outcomes, read_paths

Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include", metavar="GLOB", help="Take what matches; the first rule that does decides."
    ),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="GLOB", help="Leave out what matches.")
]
MinSize = Annotated[str | None, typer.Option("--min-size", metavar="SIZE", help="None smaller.")]
MaxSize = Annotated[str | None, typer.Option("--max-size", metavar="SIZE", help="None larger.")]
NewerThan = Annotated[
    str | None,
    typer.Option("--newer-than", metavar="TIME", help="Modified since: 2d, 2026-11-01."),
]
OlderThan = Annotated[
    str | None, typer.Option("--older-than", metavar="TIME", help="Not modified since then.")
]
StorageClass = Annotated[
    list[str] | None,
    typer.Option("--storage-class", metavar="CLASS", help="Only of these storage classes."),
]
FilesFrom = Annotated[
    str | None,
    typer.Option("--files-from", metavar="FILE", help="Only paths named there, one a line; or -."),
]
Nul = Annotated[bool, typer.Option("--null", "-0", help="Names of --files-from end in NUL.")]
FromReport = Annotated[
    str | None,
    typer.Option("--from-report", metavar="REPORT", help="Only paths of an earlier report."),
]
Only = Annotated[
    str,
    typer.Option("--only", metavar="OUTCOMES", help="Which of that report: failed,skipped."),
]


def sheet_of_filters(
    include: Include = None,
    exclude: Exclude = None,
    min_size: MinSize = None,
    max_size: MaxSize = None,
    newer_than: NewerThan = None,
    older_than: OlderThan = None,
    storage_class: StorageClass = None,
) -> Filters:
    """The filters that flags ask for."""
    return Filters(
        rules=rules_in_order(include or (), exclude or (), sys.argv[1:]),
        min_size=None if min_size is None else parse_size(min_size),
        max_size=None if max_size is None else parse_size(max_size),
        newer_than=_moment(newer_than),
        older_than=_moment(older_than),
        storage_classes=frozenset(storage_class or ()),
    )


def names_from(
    files_from: str | None, null: bool, from_report: str | None, only: str
) -> tuple[str, ...] | None:
    """The paths that a file or an earlier report names; None where neither was given."""
    if files_from is not None and from_report is not None:
        raise InvalidInput("--files-from and --from-report both name paths: choose one")
    if files_from is not None:
        return read_names(files_from, nul=null)
    return None if from_report is None else read_paths(from_report, parse_outcomes(only))


def rules_in_order(
    include: Sequence[str], exclude: Sequence[str], arguments: Sequence[str]
) -> tuple[Rule, ...]:
    """Includes and excludes in the order in which they were typed: the first to match decides."""
    typed: list[tuple[str, str]] = []
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in ("--include", "--exclude"):
            typed.append((name, value if equals else "".join(arguments[place + 1 : place + 2])))
    wanted = [("--include", each) for each in include] + [("--exclude", each) for each in exclude]
    if sorted(typed) != sorted(wanted):  # called by a program and not by this command line
        typed = wanted
    make = {"--include": Rule.include, "--exclude": Rule.exclude}
    return tuple(make[name](value) for name, value in typed)


def _moment(text: str | None) -> datetime | None:
    """``2d`` is two days ago; else a date, or a date and time, of this machine's clock."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) - parse_duration(text)
    return moment if moment.tzinfo else moment.astimezone()


def with_sheet(*sheets: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the flags of sheets: what they come to arrives by the name of the sheet.

    Typer reads flags off a signature; so that thirty of them are not written out in four commands,
    the signature is put together here.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command)
        kept = [each for name, each in own.parameters.items() if name not in _names(sheets)]
        flags = [each for sheet in sheets for each in inspect.signature(sheet).parameters.values()]

        @functools.wraps(command)
        def call(**given: Any) -> Any:
            for sheet in sheets:
                names = inspect.signature(sheet).parameters
                given[_name(sheet)] = sheet(**{name: given.pop(name) for name in names})
            return command(**given)

        hints = {
            name: hint
            for each in (command, *sheets)
            for name, hint in get_type_hints(each, include_extras=True).items()
        }
        parameters = [
            each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for each in (*kept, *flags)
        ]
        call.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=parameters, return_annotation=None
        )
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        del call.__wrapped__
        return call

    return decorate


def _name(sheet: Callable[..., Any]) -> str:
    return str(sheet.__name__).removeprefix("sheet_of_")


def _names(sheets: Sequence[Callable[..., Any]]) -> set[str]:
    return {_name(sheet) for sheet in sheets}
