"""Every request becomes a statement that asks for the same: what history shows can be run again."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from calque.config import Settings
from calque.errors import CalqueError, InvalidInput
from calque.ledger import open_ledger
from calque.ledger.history import find_load
from calque.loader.commit.truncate import truncate_table
from calque.loader.model.file_formats import (
    AvroFormat,
    CsvFormat,
    FormatOptions,
    JsonFormat,
    OrcFormat,
    ParquetFormat,
    XmlFormat,
)
from calque.loader.model.plan import MetadataColumn, MetadataKind
from calque.loader.request.option_values import on_error
from calque.loader.request.options import FORMATS, NOTHING
from calque.loader.request.parse import parse, parse_truncate
from calque.loader.request.render import render, render_table
from calque.loader.request.request import LoadRequest, Validation
from tests.loader.loader import Place
from tests.loader.world import write_files

WORDS = st.text(min_size=1, max_size=8)
NAMES = st.lists(WORDS, max_size=3, unique=True).map(tuple)
CHARACTER = st.characters(min_codepoint=1, max_codepoint=0xFF)
DELIMITER = CHARACTER.filter(lambda character: character not in "\r\n")
MOMENTS = st.sampled_from([None, "%Y-%m-%d", "%d/%m/%Y %H:%M", "%H'%M"])
ZONES = st.sampled_from([None, "UTC", "Europe/Paris"])
COMPRESSIONS = st.sampled_from(["auto", "none", "gzip", "zstd", "bz2", "xz"])
MISSING = st.sampled_from(["null", "error"])


def csv_format(**options: Any) -> CsvFormat:
    """The format; the options of none are drawn again, such as a delimiter that is the quote."""
    try:
        return CsvFormat(**options)
    except InvalidInput:
        reject()


CSV = st.builds(
    csv_format,
    compression=COMPRESSIONS,
    field_delimiter=st.one_of(DELIMITER, st.sampled_from(["||", "none", "0x1f"])),
    record_delimiter=st.sampled_from(["auto", "\n", "\r\n", "AUTO", "None", "||\n"]),
    quote=st.none() | CHARACTER,
    escape=st.none() | CHARACTER,
    skip_header=st.integers(0, 9),
    parse_header=st.booleans(),
    null_if=NAMES,
    quoted_nulls=st.booleans(),
    empty_field_as_null=st.booleans(),
    trim_space=st.booleans(),
    comment=st.none() | CHARACTER,
    skip_blank_lines=st.booleans(),
    encoding=st.sampled_from(["utf-8", "latin-1"]),
    replace_invalid_characters=st.booleans(),
    error_on_column_count_mismatch=st.booleans(),
    date_format=MOMENTS,
    timestamp_format=MOMENTS,
    time_zone=ZONES,
    true_values=NAMES,
    false_values=NAMES,
    decimal_point=st.sampled_from([".", ","]),
)
JSON = st.builds(
    JsonFormat,
    compression=COMPRESSIONS,
    strip_outer_array=st.booleans(),
    null_if=NAMES,
    strip_null_values=st.booleans(),
    missing_field=MISSING,
    date_format=MOMENTS,
    timestamp_format=MOMENTS,
    time_zone=ZONES,
)
FORMAT: st.SearchStrategy[FormatOptions | None] = st.one_of(
    st.none(),
    CSV,
    JSON,
    st.builds(ParquetFormat, missing_field=MISSING, copy_if_fits=st.booleans(), time_zone=ZONES),
    st.builds(OrcFormat, missing_field=MISSING, time_zone=ZONES),
    st.builds(AvroFormat, missing_field=MISSING, time_zone=ZONES),
    st.builds(XmlFormat, row_tag=WORDS, attribute_prefix=st.text(max_size=2), time_zone=ZONES),
)
POLICIES = st.sampled_from(
    ["ABORT", "ABORT_7", "CONTINUE", "SKIP_FILE", "SKIP_FILE_3", "SKIP_FILE_12.5%"]
).map(on_error)


@st.composite
def requests(draw: st.DrawFn) -> LoadRequest:
    """Any request a statement can ask for."""
    columns = draw(NAMES)
    sources = draw(st.sampled_from([{}, {"files": ("a", "b'c")}, {"pattern": r"a\d+[.]csv"}]))
    ends = draw(st.sampled_from([{}, {"purge": True}, {"archive": "s3://old/it's \\ here/"}]))
    extra: dict[str, Any] = {"match_by": draw(st.sampled_from([None, "name", "name_insensitive"]))}
    if draw(st.booleans()):
        extra["metadata_columns"] = (MetadataColumn("Src of `it`", MetadataKind.FILE),)
    return LoadRequest(
        stage=draw(WORDS),
        into=draw(st.one_of(WORDS, st.sampled_from(["warehouse/sales", "a.b", "iceberg:x/y.z"]))),
        format=draw(FORMAT),
        columns=columns,
        force=draw(st.booleans()),
        on_error=draw(POLICIES),
        size_limit=draw(st.none() | st.integers(1, 10**12)),
        max_files=draw(st.none() | st.integers(1, 10**6)),
        validation=draw(st.sampled_from([None, Validation(), Validation(5)])),
        return_failed_only=draw(st.booleans()),
        partition_by=draw(NAMES),
        create=draw(st.booleans()),
        evolve=draw(st.booleans()),
        evolve_limit=draw(st.integers(1, 500)),
        rescue_column=draw(st.sampled_from([None, "the rest, so to speak"])),
        on_changed=draw(st.sampled_from(["reload", "skip", "error", "replace"])),
        load_uncertain_files=draw(st.booleans()),
        dry_run=draw(st.booleans()),
        label=draw(st.sampled_from([None, "nightly-1"])),
        min_age=draw(st.floats(0, 1e9)),
        **sources,
        **ends,
        **extra,
    )


@given(requests())
def test_a_rendered_request_reads_back(request: LoadRequest) -> None:
    """parse(render(r)) is r, whatever stands in its names and values."""
    text = render(request)
    assert parse(text) == replace(request, text=text)


def test_every_field_of_a_format_can_be_said() -> None:
    """Each field of each format has an option, so that none is lost on the way to history."""
    for made, known, _ in FORMATS.values():
        told = {target for target, _ in known.values()} - {NOTHING}
        assert told == set(made.__slots__) - {"kind"}


@pytest.mark.parametrize(
    "select",
    [
        "COPY INTO t (a, b) FROM (SELECT $1, $2::INT FROM @in s WHERE s.$1 <> '') LABEL = 'x'",
        "COPY INTO t FROM (SELECT upper(name) AS name, METADATA$FILENAME AS src FROM 'in/')",
    ],
)
def test_a_select_reads_back(select: str) -> None:
    """A transformation whose text is gone becomes a SELECT that transforms alike."""
    request = replace(parse(select), text=None)
    again = parse(render(request))
    assert replace(again, text=None) == request


def test_a_statement_stays_as_it_was_written() -> None:
    """What came as text is kept as that text."""
    text = "copy into t from @landing  purge=true"
    assert render(parse(text)) == text


@given(WORDS)
def test_a_truncate_reads_back(name: str) -> None:
    """The name of a truncated table survives, whatever it is."""
    assert parse_truncate(f"TRUNCATE TABLE {render_table(name)}") == name


def test_history_can_be_run_again(delta: Place) -> None:
    """Every statement in the ledger parses; a rebuilt load, whose text is lost, has none."""
    write_files(delta.stage, 1)
    loaded = delta.load(pattern=r"f\d+[.]csv")
    with open_ledger(delta.ledger) as ledger:
        emptied = truncate_table(delta.table, Settings(), ledger)
        first = find_load(ledger, loaded.load_ids[0]).statement or ""
        second = find_load(ledger, emptied.load_ids[0]).statement or ""
    assert (parse(first).into, parse(first).pattern) == (delta.table, r"f\d+[.]csv")
    assert parse_truncate(second) == delta.table
    lost = replace(delta, ledger=str(delta.folder / "other.db"))
    write_files(delta.stage, 1, first=1)
    lost.load()
    with open_ledger(lost.ledger) as ledger:
        rebuilt = find_load(ledger, loaded.load_ids[0])
    assert rebuilt.statement is None
    assert re.search("rebuilt", rebuilt.message or "")


def test_a_wrong_statement_is_never_kept() -> None:
    """A request that contradicts itself is refused before it could be rendered."""
    with pytest.raises(CalqueError, match="choose one"):
        LoadRequest(stage="s", into="t", purge=True, archive="old/")
