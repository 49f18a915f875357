"""The options of each file format, as values; its reader is in ``run/formats/registry.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from calque.errors import InvalidInput

Compression = Literal["auto", "none", "gzip", "zstd", "bz2", "xz"]
"""``auto``: by extension; always checked by magic bytes, and refused where they disagree."""

EscapeStyle = Literal["literal", "mysql", "postgresql", "hive"]
"""What an escape means before a letter; see ``formats/delimited/escapes.py``."""

BinaryFormat = Literal["utf8", "hex", "base64"]
"""``utf8``: text is its own bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFormat:
    """Delimited text (CSV, TSV). Names in comments are the options' spelling in COPY INTO."""

    compression: Compression = "auto"
    field_delimiter: str = ","  # FIELD_DELIMITER, of one or more characters
    record_delimiter: str = "auto"  # RECORD_DELIMITER; auto: \n, \r\n or \r
    quote: str | None = '"'  # FIELD_OPTIONALLY_ENCLOSED_BY / QUOTE
    escape: str | None = None  # ESCAPE, inside and outside of quotes; None: doubled quotes
    escape_style: EscapeStyle = "literal"  # ESCAPE_STYLE
    skip_header: int = 0  # SKIP_HEADER, lines
    parse_header: bool = False  # PARSE_HEADER / header: the first line after the skipped is names
    null_if: tuple[str, ...] = ()  # NULL_IF, unquoted spellings of NULL
    quoted_nulls: bool = False  # a quoted null marker is NULL too
    empty_field_as_null: bool = False  # EMPTY_FIELD_AS_NULL; the empty string is itself by default
    trim_space: bool = False  # TRIM_SPACE
    comment: str | None = None  # lines that begin with it are passed over
    skip_blank_lines: bool = True  # SKIP_BLANK_LINES
    encoding: str = "utf-8"  # ENCODING
    replace_invalid_characters: bool = False  # REPLACE_INVALID_CHARACTERS
    error_on_column_count_mismatch: bool = True  # ERROR_ON_COLUMN_COUNT_MISMATCH
    date_format: str | None = None  # DATE_FORMAT, strptime spelling; None: ISO 8601
    timestamp_format: str | None = None  # TIMESTAMP_FORMAT, strptime spelling; None: ISO 8601
    time_format: str | None = None  # TIME_FORMAT, of times of the day; None: ISO 8601
    time_zone: str | None = None  # of timestamps that name none; None: refused for tz types
    true_values: tuple[str, ...] = ("true", "TRUE", "True", "1")
    false_values: tuple[str, ...] = ("false", "FALSE", "False", "0")
    decimal_point: str = "."
    thousands_separator: str | None = None  # THOUSANDS_SEPARATOR, between groups of three digits
    binary_format: BinaryFormat = "utf8"  # BINARY_FORMAT: how columns of bytes are spelled
    nan_display: str | None = None  # NAN_DISPLAY: what stands for NaN beside its usual spellings
    kind: Literal["csv"] = "csv"

    def __post_init__(self) -> None:
        if not self.field_delimiter:
            raise InvalidInput("FIELD_DELIMITER cannot be empty")
        if self.field_delimiter == self.record_delimiter:
            raise InvalidInput("FIELD_DELIMITER and RECORD_DELIMITER cannot be the same")
        if self.quote is not None and len(self.quote) != 1:
            raise InvalidInput(f"a quote is one character, not {self.quote!r}")
        if self.quote is not None and self.quote in (self.field_delimiter, self.record_delimiter):
            raise InvalidInput("a quote cannot be a delimiter")
        if self.escape is not None and len(self.escape) != 1:
            raise InvalidInput(f"an escape is one character, not {self.escape!r}")
        if self.escape is not None and self.escape in (self.field_delimiter, self.record_delimiter):
            raise InvalidInput("ESCAPE cannot be a delimiter")
        if self.escape_style not in get_args(EscapeStyle):
            raise InvalidInput(
                f"ESCAPE_STYLE is one of {', '.join(get_args(EscapeStyle))}, "
                f"not {self.escape_style!r}"
            )
        if self.binary_format not in get_args(BinaryFormat):
            raise InvalidInput(f"BINARY_FORMAT is UTF8, HEX or BASE64, not {self.binary_format!r}")
        self._check_numbers()
        if self.skip_header < 0:
            raise InvalidInput("SKIP_HEADER cannot be negative")

    def _check_numbers(self) -> None:
        marks = [
            self.decimal_point,
            *([self.thousands_separator] if self.thousands_separator else []),
        ]
        if any(len(mark) != 1 or mark.isalnum() or mark in "+-" for mark in marks):
            raise InvalidInput(
                "DECIMAL_POINT and THOUSANDS_SEPARATOR are one character each, such as , and ."
            )
        if len(set(marks)) < len(marks):
            raise InvalidInput("DECIMAL_POINT and THOUSANDS_SEPARATOR cannot be the same")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFormat:
    """NDJSON; with ``strip_outer_array`` one JSON array of objects a file."""

    compression: Compression = "auto"
    strip_outer_array: bool = False  # STRIP_OUTER_ARRAY
    null_if: tuple[str, ...] = ()  # NULL_IF
    strip_null_values: bool = False  # STRIP_NULL_VALUES
    missing_field: Literal["null", "error"] = "null"  # MISSING_FIELD_AS
    date_format: str | None = None
    timestamp_format: str | None = None
    time_format: str | None = None
    time_zone: str | None = None  # of timestamps that name none; None: refused for tz types
    kind: Literal["json"] = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFormat:
    """Parquet. A file whose schema fits the table already is copied, not decoded."""

    missing_field: Literal["null", "error"] = "error"  # MISSING_FIELD_AS
    copy_if_fits: bool = True
    time_zone: str | None = None  # of timestamps without one, for columns with one
    kind: Literal["parquet"] = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcFormat:
    missing_field: Literal["null", "error"] = "error"
    time_zone: str | None = None
    kind: Literal["orc"] = "orc"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFormat:
    missing_field: Literal["null", "error"] = "error"
    time_zone: str | None = None
    kind: Literal["avro"] = "avro"


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlFormat:
    """XML; every ``row_tag`` element is a row, attributes are columns with a prefix."""

    compression: Compression = "auto"
    row_tag: str = "row"  # ROW_TAG
    attribute_prefix: str = "_"
    date_format: str | None = None
    timestamp_format: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    kind: Literal["xml"] = "xml"


FormatOptions = CsvFormat | JsonFormat | ParquetFormat | OrcFormat | AvroFormat | XmlFormat
