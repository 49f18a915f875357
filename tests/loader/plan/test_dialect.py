"""The meaning of a CSV does not depend on what was typed beside it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from sqlalchemy import select

from calque.config import LedgerSettings, Secret, Settings
from calque.errors import DataError, StatementInvalid
from calque.ledger import open_ledger
from calque.ledger.schema import loads
from calque.loader.api import load, sql
from calque.loader.report import Report
from tests.loader.loader import Place
from tests.loader.world import rows

KNOWN = {
    "usual": "id,name\n1,a\n2,b\n",
    "semicolons": "id;name\n1;a, c\n2;b\n",
    "tabs": "id\tname\n1\ta\n2\tb\n",
    "bars": "id|name\n1|a\n2|b\n",
    "apostrophes": "'id','name'\n'1','a,c'\n'2','b'\n",
    "quotes": 'id,name\n1,"a\nc"\n2,"b;d"\n',
    "marked": "\ufeffid,name\n1,a\n2,b\n",
}


def settings(place: Place) -> Settings:
    return Settings(ledger=LedgerSettings(url=Secret(place.ledger)))


def load_csv(place: Place, **options: Any) -> Report:
    """A load from Python, as a user writes it."""
    return load(place.source, place.table, settings=settings(place), spark="local", **options)


def stage(place: Place, *texts: str | bytes) -> None:
    """Files beside those that are there."""
    place.stage.mkdir(exist_ok=True)
    begun = len(list(place.stage.iterdir()))
    for number, text in enumerate(texts, begun):
        body = text.encode() if isinstance(text, str) else text
        (place.stage / f"{number}.csv").write_bytes(body)


@pytest.mark.parametrize("format", [None, "csv"])
@pytest.mark.parametrize("text", KNOWN.values(), ids=KNOWN)
def test_typing_the_format_changes_nothing(delta: Place, text: str, format: str | None) -> None:
    """Header, delimiter and quote are recognised, with ``format="csv"`` and without."""
    stage(delta, text)
    report = load_csv(delta, format=format)
    assert rows(delta).column_names == ["id", "name"]
    assert rows(delta).column("id").to_pylist() == [1, 2]
    assert any(note.startswith("read as CSV: delimiter") for note in report.notes)


@pytest.mark.parametrize("format", [None, "csv"])
def test_a_file_without_a_header(delta: Place, format: str | None) -> None:
    """Rows from line 1 on are recognised by their types, and all of them are loaded."""
    stage(delta, "1;a;2026-01-01\n2;b;2026-01-02\n")
    report = load_csv(delta, format=format)
    assert report.rows_loaded == 2
    assert any("without a header" in note for note in report.notes)


def test_the_next_load_reads_the_same_way(simple: Place) -> None:
    """What was recognised or said is kept with the table, so that a later file is no riddle."""
    stage(simple, "id;name\n1;a\n2;b\n")
    load_csv(simple, format_options={"null_if": "-"}, format="csv")
    stage(simple, "id;name\n3;-\n")
    report = load_csv(simple)
    assert any("as the table was made" in note for note in report.notes)
    assert sorted(rows(simple).to_pylist(), key=lambda row: row["id"])[2] == {"id": 3, "name": None}


def test_a_table_without_a_header_stays_so(simple: Place) -> None:
    """A later file whose first line looks like names is read as the table's files are."""
    stage(simple, "1,a\n2,b\n")
    load_csv(simple, format="csv", format_options={"header": False})
    stage(simple, "3,c\n")
    load_csv(simple)
    assert sorted(rows(simple).column(0).to_pylist()) == [1, 2, 3]


def test_what_is_said_overrules_what_is_kept(simple: Place) -> None:
    """An option of this load counts more than the table's."""
    stage(simple, "id;name\n1;a\n2;b\n")
    load_csv(simple)
    stage(simple, "id,name\n3,c\n")
    load_csv(simple, format="csv", format_options={"delimiter": ","})
    assert sorted(rows(simple).column("id").to_pylist()) == [1, 2, 3]


AMBIGUOUS = {
    "all text": ("name,city\nanna,paris\n", "--header"),
    "a header alone": ("id,name\n", "--header"),
    "a name that is a number": ("id,2026\n1,2\n2,3\n", "--header"),
    "two delimiters": ("1,5;2,5\n3,5;4,5\n", "--delimiter"),
}


@pytest.mark.parametrize(("text", "flag"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_ambiguity_is_an_error_that_names_the_flag(delta: Place, text: str, flag: str) -> None:
    """Where two readings hold nothing is guessed and no table is made."""
    stage(delta, text)
    with pytest.raises(StatementInvalid) as caught:
        load_csv(delta)
    assert flag in (caught.value.hint or "")
    assert not DeltaTable.is_deltatable(delta.table)


@pytest.mark.parametrize("header", [True, False])
def test_a_flag_settles_it(delta: Place, header: bool) -> None:
    """What was ambiguous loads once it is said."""
    stage(delta, "name,city\nanna,paris\n")
    report = load_csv(delta, format="csv", format_options={"header": header})
    assert report.rows_loaded == (1 if header else 2)


def test_files_that_begin_alike_have_a_header(delta: Place) -> None:
    """A first line that every file has, and no other line, names the columns."""
    stage(delta, "name,city\nanna,paris\n", "name,city\nben,rome\n")
    assert load_csv(delta).rows_loaded == 2


def test_the_columns_of_a_table_are_evidence(delta: Place) -> None:
    """Into a table that another tool made, a first line of its columns' names is a header."""
    schema = pa.schema([("name", pa.string()), ("city", pa.string())])
    DeltaTable.create(delta.table, Schema.from_arrow(schema))
    stage(delta, "City,Name\nparis,anna\n")
    load_csv(delta)
    assert rows(delta).to_pylist() == [{"name": "anna", "city": "paris"}]


def test_utf_16_is_recognised_by_its_mark(delta: Place) -> None:
    """A byte order mark tells the encoding, which is kept as well."""
    stage(delta, "id,name\n1,é\n".encode("utf-16"))
    report = load_csv(delta)
    assert rows(delta).to_pylist() == [{"id": 1, "name": "é"}]
    assert any("utf-16" in note for note in report.notes)


WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
TEXTS = ("id,name\n1,é\n2,x\n", "id;name\n1;日本語\n2;Ελλάδα\n", "1\té\n2\tx")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("text", TEXTS)
def test_wide_encodings_are_recognised_without_a_mark(
    delta: Place, text: str, encoding: str, packed: bool
) -> None:
    """By their zero bytes, in compressed files too; the report states what was recognised."""
    body = text.encode(encoding)
    stage(delta, gzip.compress(body) if packed else body)
    report = load_csv(delta)
    assert rows(delta).column(0).to_pylist() == [1, 2]
    assert any(f" {encoding} " in note for note in report.notes)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1250", "gbk", "shift-jis", "koi8-r"])
def test_other_bytes_are_an_error_that_names_the_flag(delta: Place, encoding: str) -> None:
    """One byte a letter tells nothing: nothing is guessed, and what is said is believed."""
    word = {"gbk": "中文", "shift-jis": "日本", "koi8-r": "мир"}.get(encoding, "é")
    stage(delta, f"id,name\n1,{word}\n2,x\n".encode(encoding))
    for options in ({}, {"on_error": "continue"}, {"format": "csv"}):
        with pytest.raises(StatementInvalid) as caught:
            load_csv(delta, **options)
        assert "--encoding" in (caught.value.hint or "")
    assert not DeltaTable.is_deltatable(delta.table)
    load_csv(delta, format="csv", format_options={"encoding": encoding})
    assert rows(delta).column("name").to_pylist() == [word, "x"]


def test_bad_bytes_in_one_file_do_not_end_a_patient_statement(delta: Place) -> None:
    """Files that are UTF-8 are evidence: beside them a bad row is one, and says what to do."""
    stage(delta, "id,name\n1,é\n", b"id,name\n2,\xe9\n3,x\n", "id,name\n4,y\n")
    report = load_csv(delta, on_error="continue")
    assert sorted(rows(delta).column("id").to_pylist()) == [1, 3, 4]
    (bad,) = [row for row in report.rows() if row.errors]
    assert "--encoding" in (bad.first_error or "")


def test_a_damaged_letter_among_good_ones_is_a_bad_row(delta: Place) -> None:
    """One stray byte in a text that is UTF-8 elsewhere does not make it another encoding."""
    stage(delta, "id,name\n1,éàü\n".encode() + b"2,\xff\n")
    report = load_csv(delta, on_error="continue")
    assert (report.rows_loaded, report.errors) == (1, 1)


def test_json_is_always_utf_8(delta: Place) -> None:
    """There is no option to name another encoding, and the hint does not name one."""
    delta.stage.mkdir()
    (delta.stage / "a.json").write_bytes('{"id": 1}\n'.encode("utf-16-le"))
    with pytest.raises(DataError) as caught:
        load_csv(delta)
    assert "ENCODING" not in str(caught.value)


def test_a_file_format_means_its_documented_defaults(delta: Place) -> None:
    """``TYPE = CSV`` in a COPY INTO has no header, whatever line 1 looks like."""
    stage(delta, "id,name\n1,a\n")
    report = sql(
        f"COPY INTO '{delta.table}' FROM '{delta.source}' FILE_FORMAT = (TYPE = CSV)",
        settings=settings(delta),
        spark="local",
    )
    assert report.rows_loaded == 2


def test_empty_files_beside_others(delta: Place, tmp_path: Path) -> None:
    """Files without bytes tell nothing and hinder nothing."""
    stage(delta, "", "id;name\n1;a\n", "")
    assert load_csv(delta).rows_loaded == 1


def test_history_says_what_was_recognised(delta: Place) -> None:
    """The statement of a load can be run again as it is, and reads the files the same way."""
    stage(delta, "id;name\n1;a\n")
    load_csv(delta, format="csv")
    with open_ledger(delta.ledger) as ledger, ledger.read() as connection:
        (statement,) = connection.execute(select(loads.c.statement)).scalars()
    assert "FIELD_DELIMITER = ';'" in statement
    assert "PARSE_HEADER = TRUE" in statement


@pytest.mark.parametrize("kept", ["", "[]", '{"field_delimiter": 5}', '{"quote": "ab"}', "{"])
def test_a_spoilt_property_is_no_dialect(delta: Place, kept: str) -> None:
    """What others wrote into the table's property is not believed: files are looked at instead."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    DeltaTable.create(
        delta.table,
        Schema.from_arrow(schema),
        configuration={"calque.csv": kept},
        raise_if_key_not_exists=False,
    )
    stage(delta, "id;name\n1;a\n")
    assert load_csv(delta).rows_loaded == 1
