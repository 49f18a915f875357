"""COPY INTO in three spellings, and clear errors for what is none."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import StatementInvalid
from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import CsvFormat, JsonFormat, ParquetFormat
from calque.loader.model.plan import MetadataColumn, MetadataKind, Transformation
from calque.loader.request.parse import parse, parse_truncate
from calque.loader.request.request import LoadRequest, Validation


def test_snowflake() -> None:
    """The statement of Snowflake's manual, every option in its place."""
    found = parse(
        """
        COPY INTO shop.sales (id, amount)
          FROM @landing/2026/
          FILES = ('a.csv', 'b.csv')
          FILE_FORMAT = (TYPE = CSV FIELD_DELIMITER = '|' SKIP_HEADER = 1
                         NULL_IF = ('NULL', '\\\\N') EMPTY_FIELD_AS_NULL = TRUE)
          ON_ERROR = SKIP_FILE_10% SIZE_LIMIT = 1000 PURGE = TRUE FORCE = FALSE
          RETURN_FAILED_ONLY = TRUE LOAD_UNCERTAIN_FILES = TRUE;
        """
    )
    assert (found.into, found.stage, found.columns) == (
        "shop.sales",
        "@landing/2026/",
        ("id", "amount"),
    )
    assert found.files == ("a.csv", "b.csv")
    assert isinstance(found.format, CsvFormat)
    assert (found.format.field_delimiter, found.format.skip_header) == ("|", 1)
    assert found.format.null_if == ("NULL", "\\N")
    assert found.format.empty_field_as_null
    assert found.on_error == ErrorPolicy(ErrorMode.SKIP_FILE, percent=10)
    assert (found.size_limit, found.purge, found.force) == (1000, True, False)
    assert found.return_failed_only
    assert found.load_uncertain_files


def test_databend() -> None:
    """Databend's spelling: commas, MAX_FILES, a quoted location, ABORT_n."""
    found = parse(
        "COPY INTO sales FROM 's3://landing/x y/' PATTERN = '.*[.]ndjson' "
        "FILE_FORMAT = (TYPE = NDJSON, COMPRESSION = ZSTD) MAX_FILES = 7 ON_ERROR = ABORT_5"
    )
    assert found.stage == "s3://landing/x y/"
    assert found.pattern == ".*[.]ndjson"
    assert found.format == JsonFormat(compression="zstd")
    assert found.max_files == 7
    assert found.on_error == ErrorPolicy(ErrorMode.ABORT, 5)


def test_databricks() -> None:
    """Databricks' spelling: FILEFORMAT, quoted options, a table by path, a glob as pattern."""
    found = parse(
        "COPY INTO delta.`s3://lake/sales` FROM 's3://landing/' FILEFORMAT = CSV "
        "PATTERN = '2026/*.csv' FORMAT_OPTIONS ('header' = 'true', 'sep' = ';', "
        "'inferSchema' = 'true') COPY_OPTIONS ('force' = 'true', 'mergeSchema' = 'true')"
    )
    assert found.into == "s3://lake/sales"
    assert found.format == CsvFormat(parse_header=True, field_delimiter=";")
    assert found.force
    assert found.evolve
    assert found.pattern == r"2026/[^/]*\.csv"


def test_select_becomes_a_transformation() -> None:
    """$1, names, casts and metadata columns become expressions over staged rows."""
    found = parse(
        "COPY INTO t (a, b, c) FROM (SELECT s.$1, $2::INT + 1, METADATA$FILENAME "
        "FROM @in/x s WHERE s.$1 <> '') FILE_FORMAT = (TYPE = CSV)"
    )
    assert found.stage == "@in/x"
    assert found.transformation == Transformation(
        ("`$1`", "CAST(`$2` AS INT) + 1", "_metadata_file"), (), "`$1` <> ''"
    )


def test_select_star_is_no_transformation() -> None:
    """SELECT * takes the plain, fast way."""
    found = parse("COPY INTO t FROM (SELECT * FROM 'in/') FILE_FORMAT = (TYPE = PARQUET)")
    assert found.transformation is None
    assert found.format == ParquetFormat()


def test_validation_modes() -> None:
    """RETURN_n_ROWS, RETURN_ERRORS and VALIDATE n ROWS."""
    copy = "COPY INTO t FROM 'x' "
    assert parse(copy + "VALIDATION_MODE = RETURN_7_ROWS").validation == Validation(7)
    assert parse(copy + "VALIDATION_MODE = 'RETURN_ERRORS'").validation == Validation()
    assert parse(copy + "FILEFORMAT = CSV VALIDATE 5 ROWS").validation == Validation(5)
    assert parse(copy + "FILEFORMAT = CSV VALIDATE ALL").validation == Validation()


def test_our_own_options() -> None:
    """What no other system has: on_changed, label, metadata columns, dry run."""
    found = parse(
        "COPY INTO 'lake/t' FROM 'in/*.csv' ON_CHANGED = REPLACE LABEL = 'n-1' DRY_RUN = TRUE "
        "INCLUDE_METADATA = (src = METADATA$FILENAME) PARTITION_BY = (country) MIN_AGE = 30"
    )
    assert (found.on_changed, found.label, found.dry_run) == ("replace", "n-1", True)
    assert found.metadata_columns == (MetadataColumn("src", MetadataKind.FILE),)
    assert (found.partition_by, found.min_age) == (("country",), 30.0)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "at the end"),
        ("SELECT 1", "line 1, column 1"),
        ("COPY t FROM x", "column 6"),
        ("COPY INTO t\nFROM", "at the end"),
        ("COPY INTO t\nFROM 's' FORSE = TRUE", "line 2, column 10.*FORCE"),
        ("COPY INTO t FROM 's' PURGE = maybe", "PURGE cannot be 'maybe'"),
        ("COPY INTO t FROM 's' FILE_FORMAT = (TYPE = CSV FIELD_DELIM = ',')", "FIELD_DELIMITER"),
        ("COPY INTO t FROM 's' FILE_FORMAT = (TYPE = CSV", "at the end"),
        ("COPY INTO t FROM 's' FILE_FORMAT = (TYPE = EXCEL)", "EXCEL"),
        ("COPY INTO t FROM 's'; DROP TABLE x", "one statement"),
        ("COPY INTO t FROM (SELECT count(*) FROM 's')", "one row at a time"),
        ("COPY INTO t FROM (SELECT $1 FROM 's' GROUP BY 1)", "."),
        ("COPY INTO t FROM 'unclosed", "cannot be read"),
        ("COPY INTO t FROM 's' ON_ERROR = SOMETIMES", "ABORT_STATEMENT"),
        ("COPY INTO t FROM 's' FILES = ('a') PATTERN = 'b'", "FILES and PATTERN"),
        ("COPY INTO t FROM 's' MAX_FILES = 0", "at least 1"),
        ("COPY INTO t FROM 's' PATTERN = '('", "regular expression"),
        ("COPY INTO t FROM 's' LABEL = 'a/b'", "label"),
        ("COPY INTO t FROM 's' MAX_FILES = 1e400", "MAX_FILES cannot be '1e400'"),
        ("COPY INTO t FROM 's' MAX_FILES = 1.5e400", "MAX_FILES cannot be '1.5e400'"),
        (f"COPY INTO t FROM 's' MAX_FILES = {'9' * 5000}", "MAX_FILES cannot be"),
        ("COPY INTO t FROM 's' MAX_FILES = -many", "MAX_FILES cannot be '-many'"),
        ("COPY INTO t FROM 's' FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1e3)", "SKIP_HEADER"),
        ("COPY INTO t FROM 's' FILEFORMAT = CSV VALIDATE 1.5 ROWS", "whole number"),
        ("COPY INTO t FROM 's' MAX_FILES = 'a'", "MAX_FILES cannot be 'a': it is a whole number"),
        ("COPY INTO t FROM 's' MAX_FILES = '1_0'", "whole number"),
        ("COPY INTO t FROM 's' SIZE_LIMIT = '\uff11'", "whole number"),
        ("COPY INTO t FROM 's' MIN_AGE = 'a'", "MIN_AGE cannot be 'a': it is a number of seconds"),
        ("COPY INTO t FROM 's' MIN_AGE = 'nan'", "number of seconds"),
        ("COPY INTO t FROM 's' FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 'a')", "whole number"),
    ],
)
def test_errors_say_where_and_what(text: str, place: str) -> None:
    """A statement that cannot be read names its place and, where there is one, the right word."""
    with pytest.raises(StatementInvalid, match=f"(?s){place}"):
        parse(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but a request or StatementInvalid comes out, whatever goes in."""
    with suppress(StatementInvalid):
        assert isinstance(parse(f"COPY INTO t FROM 's' {text}"), LoadRequest)


def test_truncate() -> None:
    """TRUNCATE TABLE is read too; anything else is left to COPY INTO."""
    assert parse_truncate("TRUNCATE TABLE shop.sales;") == "shop.sales"
    assert parse_truncate("truncate 'lake/t'") == "lake/t"
    assert parse_truncate("COPY INTO t FROM 's'") is None
    with pytest.raises(StatementInvalid):
        parse_truncate("TRUNCATE TABLE a b")
