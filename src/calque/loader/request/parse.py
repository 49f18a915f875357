"""COPY INTO as text: the spellings of Snowflake, Databend and Databricks become one request.

Snowflake and Databend::

    COPY INTO warehouse.sales (id, amount) FROM @landing/2026/
      FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1) PATTERN = '.*[.]csv' ON_ERROR = SKIP_FILE PURGE = TRUE
    COPY INTO sales FROM (SELECT $1, $2::INT, METADATA$FILENAME FROM 's3://landing/') FILE_FORMAT = (TYPE = PARQUET)

Databricks::

    COPY INTO delta.`s3://lake/sales` FROM 's3://landing/' FILEFORMAT = CSV
      FORMAT_OPTIONS ('header' = 'true') COPY_OPTIONS ('force' = 'true')
"""  # noqa: E501 - the statements stand as people write them

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from calque.errors import InvalidInput, StatementInvalid
from calque.loader.model.plan import Transformation
from calque.loader.request.glob import glob_regex
from calque.loader.request.option_values import mode, number, number_in, text
from calque.loader.request.options import (
    COPY,
    DATABRICKS_COPY,
    FORMATS,
    NOTHING,
    Options,
    build_format,
    convert_option,
)
from calque.loader.request.request import LoadRequest, Validation
from calque.loader.request.select_clause import read_select

Pairs = dict[str, Any]

_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"[^"]*\"""", re.DOTALL)
_NAMES = (TokenType.STRING, TokenType.IDENTIFIER)
"""Tokens that were quoted: never a keyword, whatever they spell."""


Formats = Mapping[str, Mapping[str, object]]


def parse(text: str, formats: Formats = MappingProxyType({})) -> LoadRequest:
    """The request a statement asks for; StatementInvalid says where it cannot be read, and why.

    ``formats``: those of calque.toml, which ``FILE_FORMAT = 'name'`` may name.
    """
    return _Reader(text, formats).statement()


def parse_truncate(text: str) -> str | None:
    """The table of a ``TRUNCATE [TABLE] name``; None where the statement is another one."""
    reader = _Reader(text)
    if not reader.accept("TRUNCATE"):
        return None
    reader.accept("TABLE")
    table = reader.table()
    reader.accept(";")
    if reader.at < len(reader.tokens):
        raise reader.error("TRUNCATE TABLE takes one name")
    return table


@dataclass(slots=True)
class _Source:
    location: str
    transformation: Transformation | None = None


@dataclass(slots=True)
class _Found:
    """What the clauses after FROM said."""

    format_kind: str | None = None
    format_pairs: Pairs = field(default_factory=dict)
    request: Pairs = field(default_factory=dict)
    databricks: bool = False


class _Reader:
    def __init__(self, text: str, formats: Formats = MappingProxyType({})) -> None:
        self.text = text
        self.formats = formats
        # Backquotes are names in Databricks alone, and it alone says FILEFORMAT.
        plain = _QUOTED.sub("", text)
        is_databricks = "`" in plain or re.search(r"\bFILEFORMAT\b", plain, re.I)
        self.dialect = "databricks" if is_databricks else "snowflake"
        try:
            self.tokens = list(Dialect.get_or_raise(self.dialect).tokenize(text))
        except SqlglotError as error:
            raise StatementInvalid(f"the statement cannot be read: {error}") from error
        self.at = 0

    def statement(self) -> LoadRequest:
        self.word("COPY", "a statement begins with COPY INTO")
        self.word("INTO", "COPY is followed by INTO and a table")
        into = self.table()
        columns = self.names() if self.here("(") else ()
        by_position = self.accept("BY")
        if by_position:
            self.word("POSITION", "BY is followed by POSITION")
        self.word("FROM", "the table is followed by FROM and a stage")
        source = self.source()
        found = self.clauses()
        if by_position:
            found.request.setdefault("match_by", "position")
        return self._request(into, columns, source, found)

    def _request(
        self, into: str, columns: tuple[str, ...], source: _Source, found: _Found
    ) -> LoadRequest:
        options = dict(found.request)
        options.pop(NOTHING, None)
        if found.databricks and options.get("pattern") is not None:
            options["pattern"] = glob_regex(options["pattern"])
        try:
            format = build_format(found.format_kind, found.format_pairs, found.databricks)
            return LoadRequest(
                stage=source.location,
                into=into,
                columns=columns,
                transformation=source.transformation,
                format=format,
                text=self.text.strip(),
                **options,
            )
        except StatementInvalid:
            raise
        except InvalidInput as error:
            raise StatementInvalid(error.message, hint=error.hint) from error

    def table(self) -> str:
        """A name, a quoted location, or ``delta.`location```."""
        token = self.take("a table's name or location")
        if token.token_type is TokenType.STRING:
            return token.text
        parts = [token.text]
        while self.accept("."):
            parts.append(self.take("a name after the dot").text)
        if len(parts) == 2 and parts[0].lower() in ("delta", "iceberg") and "/" in parts[1]:
            return f"iceberg:{parts[1]}" if parts[0].lower() == "iceberg" else parts[1]
        return ".".join(parts)

    def source(self) -> _Source:
        if not self.accept("("):
            return _Source(self.location())
        start = self.token().start
        if not self.accept("SELECT"):
            raise self.error("a parenthesis after FROM holds a SELECT")
        depth = 0
        while not (depth == 0 and self.here("FROM")):
            depth += {"(": 1, ")": -1}.get(self.take("FROM and a stage").text, 0)
        chosen = self.text[start : self.token().start]
        self.word("FROM", "a SELECT reads FROM a stage")
        location = self.location()
        alias = self._alias()
        where = self._where()
        self.word(")", "the SELECT is closed by a parenthesis")
        return _Source(location, read_select(chosen, alias, where, self.dialect))

    def _alias(self) -> str | None:
        self.accept("AS")
        if self.here(")") or self.here("WHERE"):
            return None
        return self.take("an alias").text

    def _where(self) -> str | None:
        if not self.accept("WHERE"):
            return None
        start, depth = self.token().start, 0
        while not (depth == 0 and self.here(")")):
            depth += {"(": 1, ")": -1}.get(self.take("the end of the SELECT").text, 0)
        return self.text[start : self.token().start]

    def location(self) -> str:
        """A quoted location, or ``@stage/path`` up to the next blank or parenthesis."""
        token = self.take("a stage: '@name/path' or a quoted location")
        if token.token_type is TokenType.STRING:
            return token.text
        if token.text != "@":
            self.at -= 1
            raise self.error("a stage is @name/path or a quoted location")
        end = token.start
        while end < len(self.text) and not (self.text[end].isspace() or self.text[end] in ");"):
            end += 1
        while self.at < len(self.tokens) and self.tokens[self.at].start < end:
            self.at += 1
        return self.text[token.start : end]

    def clauses(self) -> _Found:
        found = _Found()
        while self.at < len(self.tokens):
            if self.accept(";"):
                if self.at < len(self.tokens):
                    raise self.error("one statement at a time")
                break
            self.clause(found)
        return found

    def clause(self, found: _Found) -> None:
        begin = self.at
        name = self.take("an option").text.upper()
        if name == "VALIDATE":
            found.request["validation"] = self._validate()
        elif name == "FORMAT_OPTIONS":
            self._format_options(found, begin)
        elif name == "COPY_OPTIONS":
            for key, value in self.pairs().items():
                self._copy_option(found, key, value, DATABRICKS_COPY, begin)
        elif name == "FILE_FORMAT":
            self.accept("=")
            self._once(found.format_kind is not None, name, begin)
            pairs = self._read_named_format() if not self.here("(") else self.pairs()
            if "FORMAT_NAME" in pairs:
                pairs = {**self._find_format(str(pairs.pop("FORMAT_NAME"))), **pairs}
            found.format_kind = str(pairs.pop("TYPE", "")) or None
            found.format_pairs.update(pairs)
        elif name == "FILEFORMAT":
            self.accept("=")
            self._once(found.format_kind is not None, name, begin)
            found.format_kind = self.take("a format").text
            found.databricks = True
        else:
            self._expect_equals(name)
            self._copy_option(found, name, self.value(), COPY, begin)

    def _format_options(self, found: _Found, begin: int) -> None:
        """Options of the format; two of them say what is done with bad records."""
        pairs = self.pairs()
        request = {"MODE": ("on_error", mode), "RESCUEDDATACOLUMN": ("rescue_column", text)}
        for name in request.keys() & pairs.keys():
            self._copy_option(found, name, pairs.pop(name), request, begin)
        for name in pairs.keys() & found.format_pairs.keys():
            self._once(True, name, begin)
        found.format_pairs.update(pairs)

    def _read_named_format(self) -> Pairs:
        """``FILE_FORMAT = 'name'``."""
        return self._find_format(self.take("a format: (TYPE = …) or the name of one").text)

    def _find_format(self, name: str) -> Pairs:
        """A format of calque.toml, or one of the built-in kinds."""
        if name in self.formats:
            told = {key.upper(): value for key, value in self.formats[name].items()}
            return {key: tuple(v) if isinstance(v, list) else v for key, v in told.items()}
        if name.upper() in FORMATS:
            return {"TYPE": name}
        close = get_close_matches(name, self.formats, n=1)
        raise StatementInvalid(
            f"there is no file format {name!r} in the configuration",
            hint=f"Did you mean {close[0]!r}?"
            if close
            else f"Describe it under [formats.{name}] in calque.toml: type = 'csv' …",
        )

    def _once(self, again: bool, name: str, begin: int) -> None:
        if again:
            self.at = begin  # so that the error points at the second one
            raise self.error(f"{name} is said twice")

    def _expect_equals(self, name: str) -> None:
        if not self.accept("="):
            self.at -= 1
            close = get_close_matches(name, [*COPY, "FILE_FORMAT", "FILEFORMAT"], n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise self.error(f"{name} is no option.{hint}")

    def _copy_option(
        self, found: _Found, name: str, value: Any, known: Options, begin: int
    ) -> None:
        after, self.at = self.at, begin  # so that an error points at the option
        option = known.get(name.upper())
        if option is None:
            close = get_close_matches(name.upper(), known, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise self.error(f"{name} is no option of COPY INTO.{hint}")
        target, convert = option
        self._once(target in found.request and target != NOTHING, name, begin)
        try:
            found.request[target] = convert(value)
        except (ValueError, TypeError) as error:
            raise self.error(f"{name} cannot be {value!r}: {error}") from error
        self.at = after

    def _validate(self) -> Validation:
        if self.accept("ALL") or self.at >= len(self.tokens):
            return Validation()
        token = self.token()
        if token.token_type is not TokenType.NUMBER:
            return Validation()
        self.at += 1
        self.word("ROWS", "VALIDATE n is followed by ROWS")
        return Validation(convert_option("VALIDATE", number_in(token.text), number))

    def names(self) -> tuple[str, ...]:
        self.word("(", "a list begins with a parenthesis")
        found = []
        while not self.accept(")"):
            found.append(self.take("a name or a closing parenthesis").text)
            self.accept(",")
        return tuple(found)

    def pairs(self, spelled: Callable[[Token], str] = lambda token: token.text.upper()) -> Pairs:
        """``(A = 1, B = 'x' C = TRUE)``; commas may be left out."""
        self.word("(", "options begin with a parenthesis")
        found: Pairs = {}
        while not self.accept(")"):
            name = self.take("an option or a closing parenthesis")
            if not self.accept("="):
                raise self.error(f"{name.text} needs a value: {name.text} = …")
            if spelled(name) in found:
                self.at -= 2
                raise self.error(f"{name.text} is said twice")
            found[spelled(name)] = self.value()
            self.accept(",")
        return found

    def value(self) -> Any:
        if self.here("("):
            return self._list()
        token = self.take("a value")
        if token.token_type is TokenType.STRING:
            return token.text
        if token.token_type is TokenType.NUMBER:
            return number_in(token.text)
        if token.token_type is TokenType.DASH:
            return number_in("-" + self.take("a number").text)
        if self.here("%"):  # SKIP_FILE_10%
            self.at += 1
            return token.text + "%"
        return {"TRUE": True, "FALSE": False}.get(token.text.upper(), token.text)

    def _list(self) -> Any:
        """A list of values, or pairs (``INCLUDE_METADATA = (a = METADATA$FILENAME)``)."""
        start = self.at
        self.word("(", "a list begins with a parenthesis")
        values = []
        while not self.accept(")"):
            values.append(self.value())
            if self.here("="):
                self.at = start
                return self.pairs(_column)
            self.accept(",")
        return tuple(values)

    def token(self) -> Token:
        if self.at >= len(self.tokens):
            raise self.error("the statement ends too early")
        return self.tokens[self.at]

    def take(self, what: str) -> Token:
        if self.at >= len(self.tokens):
            raise self.error(f"the statement ends where {what} was expected")
        self.at += 1
        return self.tokens[self.at - 1]

    def here(self, word: str) -> bool:
        if self.at >= len(self.tokens):
            return False
        token = self.tokens[self.at]
        return token.token_type not in _NAMES and token.text.upper() == word

    def accept(self, word: str) -> bool:
        if self.here(word):
            self.at += 1
            return True
        return False

    def word(self, word: str, why: str) -> None:
        if not self.accept(word):
            raise self.error(why)

    def error(self, why: str) -> StatementInvalid:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            line = self.text.count("\n", 0, token.start) + 1
            column = token.start - (self.text.rfind("\n", 0, token.start) + 1) + 1
            near = f"line {line}, column {column}, at {token.text!r}"
        else:
            near = "at the end"
        return StatementInvalid(f"{near}: {why}")


def _column(token: Token) -> str:
    """A column's name: as it is written in quotes, else in small letters."""
    return token.text if token.token_type in _NAMES else token.text.lower()
