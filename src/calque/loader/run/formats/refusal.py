"""Why a cell, a row or a file is refused: one word a reason, and where it stands."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Self

from calque.errors import DataError
from calque.loader.model.outcome import RowError

VALUE_CUT = 256
RAW_CUT = 4096
"""A report may keep a thousand errors for each file, and every one may hold a record of 16 MiB."""


class Code(StrEnum):
    """The reasons for which rows and files are refused."""

    COLUMN_COUNT = "COLUMN_COUNT"
    BAD_QUOTE = "BAD_QUOTE"
    UNTERMINATED_QUOTE = "UNTERMINATED_QUOTE"
    INVALID_VALUE = "INVALID_VALUE"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    PRECISION_LOSS = "PRECISION_LOSS"
    EMPTY_FIELD = "EMPTY_FIELD"
    NO_TIME_ZONE = "NO_TIME_ZONE"
    UNEXPECTED_TIME_ZONE = "UNEXPECTED_TIME_ZONE"
    NULL_NOT_ALLOWED = "NULL_NOT_ALLOWED"
    MISSING_FIELD = "MISSING_FIELD"
    INVALID_ENCODING = "INVALID_ENCODING"
    RECORD_TOO_LONG = "RECORD_TOO_LONG"
    MALFORMED = "MALFORMED"
    WRONG_COMPRESSION = "WRONG_COMPRESSION"
    TRUNCATED = "TRUNCATED"
    NOT_THIS_FORMAT = "NOT_THIS_FORMAT"
    MISSING_COLUMN = "MISSING_COLUMN"
    EXPRESSION = "EXPRESSION"


class CellError(NamedTuple):
    """A cell that does not fit its column: the row in its batch, the value, and the reason."""

    row: int
    column: str
    target_type: str
    value: str | None
    code: Code
    message: str

    def at(
        self,
        file: str,
        record: int,
        *,
        line: int = 0,
        character: int | None = None,
        raw: str | None = None,
        byte_offset: int | None = None,
    ) -> RowError:
        """The error of the cell's row; formats without lines tell the record's number alone."""
        return RowError(
            file=file,
            line=line,
            record=record,
            column=self.column,
            character=character,
            target_type=self.target_type,
            value=shorten(self.value),
            code=self.code,
            message=self.message,
            raw=raw,
            byte_offset=byte_offset,
        )


class FileRefused(DataError):
    """A whole file that cannot be read as asked; ``row_error`` says where and why."""

    row_error: RowError

    @classmethod
    def at(
        cls,
        file: str,
        code: Code,
        message: str,
        *,
        hint: str | None = None,
        line: int = 0,
        byte_offset: int | None = None,
        raw: bytes | None = None,
    ) -> Self:
        """The refusal of ``file``, with the position as far as it is known."""
        where = f"{file}, line {line}" if line else file
        refused = cls(f"{message} ({where})", hint=hint)
        refused.row_error = RowError(
            file=file,
            line=line,
            record=0,
            column=None,
            character=None,
            target_type=None,
            value=None,
            code=code,
            message=message,
            raw=show_bytes(raw) if raw is not None else None,
            byte_offset=byte_offset,
        )
        return refused


class NoSoundRecord(FileRefused):
    """A file that can be read, but of whose records none tells a column; this is the first."""


def show_bytes(raw: bytes) -> str:
    """Bytes of a record as they may be shown: cut, and never failing on their encoding."""
    return raw[:RAW_CUT].decode("utf-8", "backslashreplace")


def shorten(value: str | None) -> str | None:
    """A value as it may be kept in a report."""
    return value if value is None or len(value) <= VALUE_CUT else value[:VALUE_CUT] + "…"
