"""Options as other systems spell them: granted, refused with a reason, or read as they are said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from calque.errors import InvalidInput, StatementInvalid
from calque.loader.api import sql
from calque.loader.model.file_formats import CsvFormat
from calque.loader.request.option_values import REFUSED as REASONS
from calque.loader.request.options import COPY, FORMATS, NOTHING
from calque.loader.request.parse import parse
from tests.loader.request.option_case import World


@pytest.mark.parametrize(
    "option",
    [
        "RESCUE_COLUMN = 'r'",
        "INCLUDE_METADATA = (f = METADATA$FILENAME)",
        "ENABLE_SCHEMA_EVOLUTION = TRUE",
        "MATCH_BY_COLUMN_NAME = CASE_SENSITIVE",
        "VALIDATION_MODE = RETURN_ERRORS",
    ],
)
def test_what_a_select_cannot_do_is_refused(option: str) -> None:
    """Options that a SELECT would pass by are refused beside one."""
    with pytest.raises(StatementInvalid, match="SELECT"):
        parse(f"COPY INTO t FROM (SELECT $1 FROM 'in/') {option}")


GRANTED = {
    "LOAD_MODE": ("FULL_INGEST", "SOMEHOW"),
    "TRUNCATECOLUMNS": ("FALSE", "TRUE"),
    "ENFORCE_LENGTH": ("TRUE", "FALSE"),
    "ESCAPE_UNENCLOSED_FIELD": ("NONE", "'x'"),
    "MULTI_LINE": ("TRUE", "FALSE"),
    "MULTILINE": ("TRUE", "FALSE"),
}
"""Options that other systems have: what is done in any case, and what is refused."""


@pytest.mark.parametrize("option", GRANTED)
def test_granted_or_refused(option: str) -> None:
    """An option that changes nothing is granted where that is so, else refused with the reason."""
    granted, refused = GRANTED[option]
    where = "{}" if option in COPY else "FILE_FORMAT = (TYPE = CSV {})"
    copy = "COPY INTO t FROM 'in/' "
    assert parse(copy + where.format(f"{option} = {granted}")).stage == "in/"
    with pytest.raises(StatementInvalid, match=f"{option} cannot be"):
        parse(copy + where.format(f"{option} = {refused}"))


def test_every_granted_option_is_tried() -> None:
    """Each option without an effect is in the table above."""
    every = [COPY, *(options for _, options, _ in FORMATS.values())]
    found = {name for known in every for name, (target, _) in known.items() if target == NOTHING}
    assert found == set(GRANTED)


def test_escapes_outside_of_quotes() -> None:
    """Without quotes, or beside the same ESCAPE, it is ESCAPE; else it is refused."""
    copy = "COPY INTO t FROM 'in/' FILE_FORMAT = (TYPE = CSV {})"
    outside = "ESCAPE_UNENCLOSED_FIELD = '|'"
    bare = parse(copy.format(f"FIELD_OPTIONALLY_ENCLOSED_BY = NONE {outside}"))
    assert bare.format == CsvFormat(quote=None, escape="|")
    assert parse(copy.format(f"ESCAPE = '|' {outside}")).format == CsvFormat(escape="|")
    dump = parse(f"COPY INTO t FROM 'in/' FILE_FORMAT = (TYPE = HIVE {outside})").format
    assert isinstance(dump, CsvFormat)
    assert dump.escape == "|"
    for wrong in (outside, f"ESCAPE = 'x' QUOTE = NONE {outside}"):
        with pytest.raises(StatementInvalid, match="say the same there"):
            parse(copy.format(wrong))


@pytest.mark.parametrize(
    ("spelled", "good", "bad"),
    [("HEX", "00fF", ("0", "xy", "é")), ("BASE64", "AP8=", ("AP8", "*", "é"))],
)
def test_bytes_as_they_are_spelled(tmp_path: Path, spelled: str, good: str, bad: Any) -> None:
    """What is no such spelling is an error of its row, with its place."""
    world = World(tmp_path)
    world.stage.mkdir()
    (world.stage / "a.csv").write_text("".join(f"{one}\n" for one in (good, *bad, good)))
    DeltaTable.create(str(world.table), Schema.from_arrow(pa.schema([("v", pa.binary())])))
    report = sql(
        f"COPY INTO '{world.table}' FROM '{world.stage}/' ON_ERROR = CONTINUE "
        f"FILE_FORMAT = (TYPE = CSV BINARY_FORMAT = {spelled})",
        settings=world.settings,
        spark="local",
    )
    assert (report.rows_loaded, report.errors) == (2, 3)
    found = DeltaTable(str(world.table)).to_pyarrow_table().to_pylist()
    assert found == [{"v": b"\x00\xff"}] * 2


def test_databricks_words() -> None:
    """``mode``, ``rescuedDataColumn``, ``skipRows`` and the two options for blanks."""
    copy = "COPY INTO t FROM 'in/' FILEFORMAT = CSV FORMAT_OPTIONS "
    found = parse(
        copy + "('mode' = 'DROPMALFORMED', 'rescuedDataColumn' = 'rest', 'skipRows' = '2', "
        "'multiLine' = 'true', 'ignoreLeadingWhiteSpace' = 'true', "
        "'ignoreTrailingWhiteSpace' = 'true')"
    )
    assert str(found.on_error) == "CONTINUE"
    assert found.rescue_column == "rest"
    assert found.format == CsvFormat(skip_header=2, trim_space=True)
    for wrong in ("'mode' = 'PERMISSIVE'", "'ignoreLeadingWhiteSpace' = 'true'"):
        with pytest.raises(StatementInvalid):
            parse(f"{copy}({wrong})")
    with pytest.raises(StatementInvalid, match="a line as a row"):
        parse("COPY INTO t FROM 'in/' FILEFORMAT = TEXT")


@pytest.mark.parametrize(
    "twice",
    [
        "FORCE = TRUE FORCE = FALSE",
        "FILE_FORMAT = (TYPE = CSV QUOTE = 'x' QUOTE = 'y')",
        "FILE_FORMAT = (TYPE = CSV) FILE_FORMAT = (TYPE = CSV)",
        "FILEFORMAT = CSV FORMAT_OPTIONS ('sep' = ';') FORMAT_OPTIONS ('sep' = ',')",
        "FILEFORMAT = CSV COPY_OPTIONS ('force' = 'true') COPY_OPTIONS ('force' = 'true')",
    ],
)
def test_said_twice(twice: str) -> None:
    """An option that stands there twice is an error, whatever its values."""
    with pytest.raises(StatementInvalid, match="said twice"):
        parse(f"COPY INTO t FROM 'in/' {twice}")


@pytest.mark.parametrize(
    "same", ["QUOTE = ','", "FIELD_DELIMITER = '\"'", "RECORD_DELIMITER = '\"'"]
)
def test_a_quote_is_no_delimiter(same: str) -> None:
    """A character that would mean two things is refused, as with ESCAPE."""
    with pytest.raises(InvalidInput, match="a quote cannot be a delimiter"):
        parse(f"COPY INTO t FROM 'in/' FILE_FORMAT = (TYPE = CSV {same})")


def test_formats_by_name() -> None:
    """``FILE_FORMAT = 'name'`` is a format of the configuration; options beside it go before."""
    formats = {"ours": {"type": "csv", "field_delimiter": ";", "null_if": ["", "-"]}}
    copy = "COPY INTO t FROM 'in/' FILE_FORMAT = "
    expected = CsvFormat(field_delimiter=";", null_if=("", "-"))
    for spelled in ("'ours'", "ours", "(FORMAT_NAME = 'ours')"):
        assert parse(copy + spelled, formats).format == expected
    other = parse(copy + "(FORMAT_NAME = ours FIELD_DELIMITER = '|')", formats).format
    assert other == replace(expected, field_delimiter="|")
    with pytest.raises(StatementInvalid, match="no file format 'ors'"):
        parse(copy + "'ors'", formats)


def test_every_refusal_is_in_the_docs() -> None:
    """What is refused stands in the docs with its reason."""
    text = (Path(__file__).parents[3] / "docs" / "formats.md").read_text()
    for name, reason in REASONS.items():
        assert f"| `{name}` | {reason} |" in text
