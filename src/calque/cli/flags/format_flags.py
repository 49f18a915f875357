"""The flags that say how files are read, for every command that reads staged files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from calque.errors import CalqueError, StatementInvalid

if TYPE_CHECKING:
    from calque.loader.model.file_formats import FormatOptions

T = TypeVar("T")

_CODE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[0-7]{3}|[tnr0\\])")
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}
"""Characters that are hard to type in a shell; any other backslash is a backslash."""

StageArgument = Annotated[
    str, typer.Argument(metavar="STAGE", help="A folder, file or glob; or @name of a stage.")
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, json, parquet, orc, avro, xml, mysql, hive …"),
]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of the format."),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether line 1 of CSV files names columns."),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Between the fields of CSV files.")
]
Quote = Annotated[
    str | None, typer.Option("--quote", help="Around fields of CSV files; none for none.")
]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Of CSV files, such as cp1252.")]
Files = Annotated[
    list[str] | None, typer.Option("--file", metavar="NAME", help="Only this file; repeatable.")
]
Pattern = Annotated[
    str | None, typer.Option("--pattern", help="Regular expression for the whole name.")
]
SchemaText = Annotated[
    str | None,
    typer.Option("--schema", metavar="COLUMNS", help="Of a table to be made: id BIGINT, …"),
]


class FormatSaid(NamedTuple):
    """A format, and which of its options the flags say."""

    format: FormatOptions | None
    said: frozenset[str] | None
    is_implied: bool


def read_format(
    format: str | None,
    option: Sequence[str] | None,
    *,
    header: bool | None,
    delimiter: str | None,
    quote: str | None,
    encoding: str | None,
) -> FormatSaid:
    """The format that the flags ask for."""
    from calque.loader.request.options import build_format, fields_said

    flags = {"header": header, "delimiter": delimiter, "quote": quote, "encoding": encoding}
    given = {name: _unescape_tab(value) for name, value in flags.items() if value is not None}
    pairs = _options(option or ())
    for name, value in given.items():
        _add_option(pairs, name, value)
    kind = format or ("csv" if given else None)
    if kind is None and pairs:
        raise StatementInvalid(
            f"--option {next(iter(pairs))} belongs to a format", hint="Name it: --format csv."
        )
    try:
        return FormatSaid(build_format(kind, pairs), fields_said(kind, pairs), format is None)
    except StatementInvalid as error:
        if error.message.partition(" ")[0] in given:
            error.message = f"--{error.message}"
        raise


def read_value(name: str, convert: Callable[[str], T], text: str) -> T:
    """The value of a flag; an error names the flag."""
    try:
        return convert(text)
    except CalqueError as error:
        raise StatementInvalid(f"{name}: {error.message}", hint=error.hint) from error
    except ValueError as error:
        raise StatementInvalid(f"{name} cannot be {text!r}: {error}") from error


def _unescape_tab(value: Any) -> Any:
    return "\t" if value == "\\t" else value


def _options(options: Sequence[str]) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            raise StatementInvalid(f"an option is spelled NAME=VALUE, not {option!r}")
        _add_option(pairs, name, _CODE.sub(_character, value))
    return pairs


def _add_option(pairs: dict[str, Any], name: str, value: Any) -> None:
    if name.lower() in map(str.lower, pairs):
        raise StatementInvalid(f"the option {name} is said twice")
    pairs[name] = value


def _character(code: re.Match[str]) -> str:
    told = code.group(1)
    if told in _LETTERS:
        return _LETTERS[told]
    number = int(told[1:], 16) if told[0] in "xu" else int(told, 8)
    return code.group() if 0xD800 <= number < 0xE000 else chr(number)  # half a pair is no text
