"""Columns that are said in words of SQL, and numbers and dates as Europe writes them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from calque.config import LedgerSettings, Secret, Settings
from calque.errors import DataError, InvalidInput, StatementInvalid
from calque.loader.api import load
from calque.loader.report import Report
from calque.loader.request.option_values import strftime
from calque.loader.request.options import build_format
from calque.loader.request.schema_text import schema_of_text
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.cast.text import cast_text
from tests.loader.loader import Place
from tests.loader.world import rows

EUROPEAN = {"decimal_point": ",", "thousands_separator": ".", "date_format": "dd/mm/yyyy"}
MESSY = (
    "Kunde;Tag;Betrag;Anzahl\n"
    "Müller, Söhne;31/12/2026;1.234.567,89;1.000\n"
    '"Ö; AG";01/02/2027;-0,5;12\n'
)


def load_csv(place: Place, text: bytes, **options: Any) -> Report:
    place.stage.mkdir(exist_ok=True)
    (place.stage / "a.csv").write_bytes(text)
    settings = Settings(ledger=LedgerSettings(url=Secret(place.ledger)))
    return load(place.source, place.table, settings=settings, spark="local", **options)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_european_file_loads_typed(simple: Place, encoding: str) -> None:
    """Decimal comma, thousands, day before month, semicolons: typed by one command."""
    options = {**EUROPEAN, "encoding": encoding}
    load_csv(simple, MESSY.encode(encoding), format="csv", format_options=options)
    found = rows(simple)
    assert found.column("Tag").to_pylist() == [date(2026, 12, 31), date(2027, 2, 1)]
    assert found.column("Anzahl").to_pylist() == [1000, 12]
    assert [float(one) for one in found.column("Betrag").to_pylist()] == [1234567.89, -0.5]
    assert found.column("Kunde").to_pylist() == ["Müller, Söhne", "Ö; AG"]


def test_the_schema_is_said(simple: Place) -> None:
    """``schema=`` in words of SQL makes the table with these types, exactly."""
    load_csv(
        simple,
        MESSY.encode(),
        format="csv",
        format_options=EUROPEAN,
        schema="Kunde VARCHAR, Tag DATE, Betrag DECIMAL(18, 2), Anzahl INT",
    )
    found = rows(simple)
    assert found.column("Betrag").to_pylist() == [Decimal("1234567.89"), Decimal("-0.50")]
    assert found.schema.field("Anzahl").type == pa.int32()


def test_the_next_file_needs_no_options(simple: Place) -> None:
    """How numbers and dates are written is kept with the table."""
    load_csv(simple, MESSY.encode(), format="csv", format_options=EUROPEAN)
    (simple.stage / "b.csv").write_text("Kunde;Tag;Betrag;Anzahl\nX;02/01/2027;2.000,5;3\n")
    assert load_csv(simple, MESSY.encode()).rows_loaded == 1
    assert 2000.5 in [float(one) for one in rows(simple).column("Betrag").to_pylist()]


NUMBERS = {
    "1.234": 1234,
    "1.234.567": 1234567,
    "-1.234": -1234,
    "1234": 1234,
    "12.34": None,
    "1.2345": None,
    ".123": None,
    "1..234": None,
    "1,5": None,
}


@pytest.mark.parametrize(("text", "value"), NUMBERS.items())
def test_thousands_are_groups_of_three(text: str, value: int | None) -> None:
    """A separator anywhere else makes it no number: nothing is dropped in silence."""
    rules = CastRules(decimal_point=",", thousands_separator=".")
    cells = cast_text(pa.array([text]), pa.int64(), rules)
    assert (cells.values.to_pylist(), len(cells.refused)) == ([value], int(value is None))


def test_a_group_in_a_number_that_is_none_refuses_the_row(delta: Place) -> None:
    """1.5 is no number where the point groups thousands."""
    with pytest.raises(DataError, match="line 2"):
        load_csv(
            delta,
            b"a;b\n1.5;x\n",
            format="csv",
            format_options={**EUROPEAN, "header": True},
            schema="a DOUBLE, b VARCHAR",
        )


@pytest.mark.parametrize(
    "options",
    [
        {"thousands_separator": "."},
        {"decimal_point": ",", "thousands_separator": ","},
        {"thousands_separator": "''"},
        {"thousands_separator": "1"},
        {"decimal_point": "-"},
    ],
)
def test_marks_of_numbers_must_differ(options: dict[str, str]) -> None:
    """Marks that would make a number mean two things are refused when they are said."""
    with pytest.raises(InvalidInput):
        build_format("csv", options)


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("dd/mm/yyyy", "%d/%m/%Y"),
        ("DD.MM.YYYY", "%d.%m.%Y"),
        ("dd/MM/yyyy HH:mm", "%d/%m/%Y %H:%M"),
        ("YYYY-MM-DD HH24:MI:SS", "%Y-%m-%d %H:%M:%S"),
    ],
)
def test_small_letters_of_dates(spelled: str, meant: str) -> None:
    """``mm`` is the month where there is no hour beside it, and minutes where there is."""
    assert strftime(spelled) == meant


def test_columns_in_words_of_sql() -> None:
    """Types as SQL has them; NOT NULL is kept; nested ones too."""
    found = schema_of_text(
        'id BIGINT NOT NULL, "the day" DATE, price NUMERIC(10, 2), t TIMESTAMP, '
        "z TIMESTAMP WITH TIME ZONE, tags ARRAY<VARCHAR>, at STRUCT<x: DOUBLE, y: DOUBLE>"
    )
    assert found == pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("the day", pa.date32()),
            ("price", pa.decimal128(10, 2)),
            ("t", pa.timestamp("us")),
            ("z", pa.timestamp("us", "UTC")),
            ("tags", pa.list_(pa.string())),
            ("at", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
        ]
    )


@pytest.mark.parametrize(
    "text",
    ["", "id", "id nonsense", "a INT, A INT", "a INT); DROP TABLE x", "a DECIMAL(99, 2)", "("],
)
def test_a_schema_that_cannot_be(text: str) -> None:
    """What is wrong is said before anything is read."""
    with pytest.raises(StatementInvalid, match="the schema"):
        schema_of_text(text)
