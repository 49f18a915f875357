"""The options of COPY INTO: each name, the field it fills, and how its value is read.

The fields are those of ``request`` and of ``loader/model/file_formats.py``; as keywords they are in
``keywords``, as flags in ``cli/commands/load.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from calque.errors import StatementInvalid
from calque.loader.model.file_formats import (
    AvroFormat,
    CsvFormat,
    FormatOptions,
    JsonFormat,
    OrcFormat,
    ParquetFormat,
    XmlFormat,
)
from calque.loader.request.option_values import (
    REFUSED,
    Convert,
    binary_format,
    boolean,
    character,
    column_match,
    compression,
    delimiter,
    empty_field,
    lower,
    metadata,
    missing_field,
    names,
    nan_display,
    number,
    on_error,
    only,
    record_delimiter,
    seconds,
    strftime,
    text,
    time_of_day,
    validation,
)

NOTHING = ""
"""The field of an option that is granted and changes nothing."""


Options = Mapping[str, tuple[str, Convert]]


COPY: Options = {
    "FILES": ("files", names),
    "PATTERN": ("pattern", text),
    "FORCE": ("force", boolean),
    "PURGE": ("purge", boolean),
    "ARCHIVE": ("archive", text),
    "ON_ERROR": ("on_error", on_error),
    "SIZE_LIMIT": ("size_limit", number),
    "MAX_FILES": ("max_files", number),
    "VALIDATION_MODE": ("validation", validation),
    "RETURN_FAILED_ONLY": ("return_failed_only", boolean),
    "MATCH_BY_COLUMN_NAME": ("match_by", column_match),
    "LOAD_UNCERTAIN_FILES": ("load_uncertain_files", boolean),
    "INCLUDE_METADATA": ("metadata_columns", metadata),
    "ON_CHANGED": ("on_changed", lower),
    "CREATE_TABLE": ("create", boolean),
    "PARTITION_BY": ("partition_by", names),
    "ENABLE_SCHEMA_EVOLUTION": ("evolve", boolean),
    "EVOLVE_LIMIT": ("evolve_limit", number),
    "RESCUE_COLUMN": ("rescue_column", text),
    "LABEL": ("label", text),
    "MIN_AGE": ("min_age", seconds),
    "DRY_RUN": ("dry_run", boolean),
    # What other systems need to be told and calque does anyway.
    "LOAD_MODE": (NOTHING, only("FULL_INGEST", "ADD_FILES_COPY")),
    "TRUNCATECOLUMNS": (NOTHING, only("FALSE")),
    "ENFORCE_LENGTH": (NOTHING, only("TRUE")),
}


DATABRICKS_COPY: Options = {
    "FORCE": ("force", boolean),
    "MERGESCHEMA": ("evolve", boolean),
}


_CSV: Options = {
    "COMPRESSION": ("compression", compression),
    "FIELD_DELIMITER": ("field_delimiter", delimiter),
    "RECORD_DELIMITER": ("record_delimiter", record_delimiter),
    "FIELD_OPTIONALLY_ENCLOSED_BY": ("quote", character),
    "QUOTE": ("quote", character),
    "ESCAPE": ("escape", character),
    "ESCAPE_STYLE": ("escape_style", lower),
    "SKIP_HEADER": ("skip_header", number),
    "PARSE_HEADER": ("parse_header", boolean),
    "NULL_IF": ("null_if", names),
    "NULL_DISPLAY": ("null_if", names),
    "QUOTED_NULLS": ("quoted_nulls", boolean),
    "EMPTY_FIELD_AS_NULL": ("empty_field_as_null", boolean),
    "TRIM_SPACE": ("trim_space", boolean),
    "COMMENT": ("comment", character),
    "SKIP_BLANK_LINES": ("skip_blank_lines", boolean),
    "ENCODING": ("encoding", text),
    "REPLACE_INVALID_CHARACTERS": ("replace_invalid_characters", boolean),
    "ERROR_ON_COLUMN_COUNT_MISMATCH": ("error_on_column_count_mismatch", boolean),
    "DATE_FORMAT": ("date_format", strftime),
    "TIMESTAMP_FORMAT": ("timestamp_format", strftime),
    "TIME_FORMAT": ("time_format", time_of_day),
    "TIME_ZONE": ("time_zone", text),
    "DECIMAL_POINT": ("decimal_point", text),
    "THOUSANDS_SEPARATOR": ("thousands_separator", character),
    "TRUE_VALUES": ("true_values", names),
    "FALSE_VALUES": ("false_values", names),
    "EMPTY_FIELD_AS": ("empty_field_as_null", empty_field),
    "ESCAPE_UNENCLOSED_FIELD": (NOTHING, only("NONE")),
    "NAN_DISPLAY": ("nan_display", nan_display),
    "BINARY_FORMAT": ("binary_format", binary_format),
    "MULTI_LINE": (NOTHING, only("TRUE")),
    # Databricks
    "MULTILINE": (NOTHING, only("TRUE")),
    "SKIPROWS": ("skip_header", number),
    "HEADER": ("parse_header", boolean),
    "SEP": ("field_delimiter", delimiter),
    "DELIMITER": ("field_delimiter", delimiter),
    "LINESEP": ("record_delimiter", record_delimiter),
    "NULLVALUE": ("null_if", names),
    "NANVALUE": ("nan_display", nan_display),
    "DATEFORMAT": ("date_format", strftime),
    "TIMESTAMPFORMAT": ("timestamp_format", strftime),
}


_JSON: Options = {
    "COMPRESSION": ("compression", compression),
    "STRIP_OUTER_ARRAY": ("strip_outer_array", boolean),
    "MULTILINE": ("strip_outer_array", boolean),
    "NULL_IF": ("null_if", names),
    "STRIP_NULL_VALUES": ("strip_null_values", boolean),
    "DATE_FORMAT": ("date_format", strftime),
    "TIMESTAMP_FORMAT": ("timestamp_format", strftime),
    "TIME_FORMAT": ("time_format", time_of_day),
    "DATEFORMAT": ("date_format", strftime),
    "TIMESTAMPFORMAT": ("timestamp_format", strftime),
}


_COLUMNAR: Options = {
    "MISSING_FIELD_AS": ("missing_field", missing_field),
    "TIME_ZONE": ("time_zone", text),
}


_XML: Options = {
    "COMPRESSION": ("compression", compression),
    "ROW_TAG": ("row_tag", text),
    "ROWTAG": ("row_tag", text),
    "ATTRIBUTE_PREFIX": ("attribute_prefix", text),
    "ATTRIBUTEPREFIX": ("attribute_prefix", text),
    "DATE_FORMAT": ("date_format", strftime),
    "TIMESTAMP_FORMAT": ("timestamp_format", strftime),
    "TIME_FORMAT": ("time_format", time_of_day),
    "TIME_ZONE": ("time_zone", text),
}


_DUMP = {"quote": None, "null_if": ("\\N",), "skip_blank_lines": False}
"""What the text dumps of databases have in common."""


_DUMPS: Mapping[str, Mapping[str, Any]] = {
    "MYSQL": {
        **_DUMP,
        "field_delimiter": "\t",
        "record_delimiter": "\n",
        "escape": "\\",
        "escape_style": "mysql",
    },
    "POSTGRESQL": {
        **_DUMP,
        "field_delimiter": "\t",
        "escape": "\\",
        "escape_style": "postgresql",
    },
    "HIVE": {**_DUMP, "field_delimiter": "\x01", "escape_style": "hive"},
}


FORMATS: Mapping[str, tuple[type[Any], Options, Mapping[str, Any]]] = {
    "CSV": (CsvFormat, _CSV, {}),
    "TSV": (CsvFormat, _CSV, {"field_delimiter": "\t"}),
    "TEXT": (CsvFormat, _CSV, {"field_delimiter": "\t"}),
    **{name: (CsvFormat, _CSV, defaults) for name, defaults in _DUMPS.items()},
    "JSON": (JsonFormat, {**_JSON, **_COLUMNAR}, {}),
    "NDJSON": (JsonFormat, {**_JSON, **_COLUMNAR}, {}),
    "PARQUET": (ParquetFormat, {**_COLUMNAR, "COPY_IF_FITS": ("copy_if_fits", boolean)}, {}),
    "ORC": (OrcFormat, _COLUMNAR, {}),
    "AVRO": (AvroFormat, _COLUMNAR, {}),
    "XML": (XmlFormat, _XML, {}),
}


DONE_ANYWAY = {
    "INFERSCHEMA": "types are the table's; those of a new table are inferred, or given by schema=",
    "MERGESCHEMA": "a new table takes the columns of all the files that are looked at",
}
"""Databricks options that say what calque does anyway: TRUE is granted, FALSE refused."""


def build_format(
    kind: str | None, pairs: Mapping[str, Any], databricks: bool = False
) -> FormatOptions | None:
    """The format of a name and its options; None where nothing was said of it."""
    if kind is None:
        if pairs:
            raise StatementInvalid("FILE_FORMAT needs a TYPE", hint="(TYPE = CSV …)")
        return None
    if kind.upper() not in FORMATS:
        raise StatementInvalid(f"there is no format {kind}", hint=f"Formats: {', '.join(FORMATS)}.")
    if databricks and kind.upper() == "TEXT":
        raise StatementInvalid(f"FILEFORMAT = TEXT cannot be read: {REFUSED['TEXT']}")
    made, known, defaults = FORMATS[kind.upper()]
    values: dict[str, Any] = dict(defaults)
    said: dict[str, tuple[str, Any]] = {}
    pairs = _merge_trim_options(pairs)
    for name, value in _merge_escapes(pairs, known, defaults).items():
        if databricks and name.upper() in DONE_ANYWAY:
            _grant(name, value)
            continue
        option = known.get(name.upper())
        if option is None:
            close = get_close_matches(name.upper(), known, n=1)
            raise StatementInvalid(
                f"{name} is no option of format {kind.upper()}",
                hint=f"Did you mean {close[0]}?" if close else f"Options: {', '.join(known)}.",
            )
        target, convert = option
        found = convert_option(name, value, convert)
        if found != said.setdefault(target, (name, found))[1] and target != NOTHING:
            raise StatementInvalid(f"{said[target][0]} and {name} say two things of one option")
        values[target] = found
    values.pop(NOTHING, None)
    built: FormatOptions = made(**values)
    return built


RECOGNISED = ("CSV", "TSV")
"""Formats of which only what is said is settled; the rest is recognised, where no SQL is spoken."""


def fields_said(kind: str | None, pairs: Mapping[str, Any]) -> frozenset[str] | None:
    """The fields of a CSV format that its options settle; None where nothing is recognised."""
    if kind is None or kind.upper() not in RECOGNISED:
        return None
    _, known, defaults = FORMATS[kind.upper()]
    return frozenset(defaults) | {known[name.upper()][0] for name in pairs}


def convert_option(name: str, value: Any, convert: Convert) -> Any:
    """The value of an option; StatementInvalid says what it may be, and why not what it is."""
    try:
        return convert(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise StatementInvalid(
            f"{name} cannot be {value!r}: {error}", hint=REFUSED.get(name.upper())
        ) from error


def _merge_trim_options(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Databricks' two options for blanks as the one that there is."""
    sides = {"IGNORELEADINGWHITESPACE", "IGNORETRAILINGWHITESPACE"}
    given = {
        name.upper(): convert_option(name, pairs[name], boolean)
        for name in pairs
        if name.upper() in sides
    }
    rest = {name: value for name, value in pairs.items() if name.upper() not in sides}
    if not any(given.values()):
        return rest
    if given.keys() != sides or not all(given.values()):
        name = sorted(given)[0]
        raise StatementInvalid(f"{', '.join(sorted(given))}: {REFUSED[name]}")
    return {**rest, "TRIM_SPACE": True}


def _merge_escapes(
    pairs: Mapping[str, Any], known: Options, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Snowflake's escape outside of quotes as ESCAPE: where there are no quotes, or both agree."""
    option = "ESCAPE_UNENCLOSED_FIELD"
    said = {name.upper(): value for name, value in pairs.items()}
    if option not in known or option not in said or character(said[option]) is None:
        return dict(pairs)
    wanted = character(said[option])
    quote = defaults.get("quote", CsvFormat().quote)
    for name, (field, _) in known.items():
        if field == "quote" and name in said:
            quote = character(said[name])
    escape = character(said["ESCAPE"]) if "ESCAPE" in said else None
    if escape != wanted and (quote is not None or escape is not None):
        raise StatementInvalid(f"{option} cannot be {wanted!r}: {REFUSED[option]}")
    rest = {name: value for name, value in pairs.items() if name.upper() != option}
    return {**rest, "ESCAPE": wanted} if escape is None else rest


def _grant(name: str, value: Any) -> None:
    """Pass what is done in any case; refuse to be told not to."""
    try:
        wanted = boolean(value)
    except ValueError as error:
        raise StatementInvalid(f"{name} cannot be {value!r}: {error}") from error
    if not wanted:
        raise StatementInvalid(f"{name} cannot be turned off: {DONE_ANYWAY[name.upper()]}")
