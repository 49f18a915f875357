"""Times of the day by TIME_FORMAT, and NaN by NAN_DISPLAY: as strict as everything else."""

from __future__ import annotations

import math
from datetime import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from calque.config import LedgerSettings, Secret, Settings
from calque.errors import StatementInvalid, Unsupported
from calque.loader.api import load
from calque.loader.commit.tables.iceberg_catalog import open_embedded_catalog
from calque.loader.request.option_values import nan_display, time_of_day
from calque.loader.run.formats.cast.infer_types import infer_type
from calque.loader.run.formats.cast.numerals import Numeral
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.cast.text import cast_text

CLOCK = pa.time64("us")


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("%H:%M", {"23:30": time(23, 30), "0:05": time(0, 5)}, ["24:00", "23:60", "23:30:00", ""]),
        ("%H:%M:%S", {"23:59:59": time(23, 59, 59)}, ["23:59:60", "23:59:61", "noon"]),
        ("%I:%M %p", {"12:00 AM": time(0, 0), "11:30 PM": time(23, 30)}, ["13:00 PM", "0:10 AM"]),
        ("%H.%M.%S.%f", {"1.2.3.000004": time(1, 2, 3, 4)}, ["1.2.3", "1.2.3.0000004"]),
    ],
)
def test_times_by_a_format(format: str, good: dict[str, time], bad: list[str]) -> None:
    """A time is what the format says; what rolls over, or is something else, is refused."""
    rules = CastRules(time_format=format)
    made = cast_text(pa.array([*good, *bad, None]), CLOCK, rules)
    assert made.values.to_pylist() == [*good.values(), *[None] * (len(bad) + 1)]
    assert [cell.row for cell in made.refused] == list(range(len(good), len(good) + len(bad)))
    assert infer_type(list(good), rules) == CLOCK
    assert infer_type([*good, *bad], rules) == pa.string()


@pytest.mark.parametrize("value", ["YYYY-MM-DD", "HH24:MI %z", "%Y %H", "HH24:MI:SS TZH"])
def test_what_is_no_time_of_the_day(value: str) -> None:
    """A date or a zone in the format would be lost: it is refused."""
    with pytest.raises(ValueError, match=r"none of|no part of"):
        time_of_day(value)


def test_how_times_are_spelled() -> None:
    """Snowflake's words and those of strptime mean the same; AUTO is ISO 8601."""
    assert time_of_day("HH24:MI:SS.FF6") == "%H:%M:%S.%f"
    assert time_of_day("HH12:MI AM") == time_of_day("%I:%M %p") == "%I:%M %p"
    assert time_of_day("AUTO") is None


def settings(folder: Path) -> Settings:
    return Settings(ledger=LedgerSettings(url=Secret(str(folder / "ledger.db"))))


FORMATS = {
    "csv": ("a.csv", "id,c\n1,23.30\n2,0.05\n"),
    "json": ("a.json", '{"id":1,"c":"23.30"}\n{"id":2,"c":"0.05"}\n'),
    "xml": (
        "a.xml",
        "<t><row><id>1</id><c>23.30</c></row><row><id>2</id><c>0.05</c></row></t>",
    ),
}


@pytest.mark.parametrize("format", FORMATS)
def test_a_new_table_of_times(tmp_path: Path, format: str) -> None:
    """TIME_FORMAT makes a column of times in Iceberg; Delta, which has none, keeps the text."""
    name, body = FORMATS[format]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(body)
    told: dict[str, Any] = {
        "format": format,
        "format_options": {"time_format": "HH24.MI"},
        "spark": "local",
    }
    stage, known = f"{tmp_path}/in/", settings(tmp_path)
    load(stage, f"iceberg:{tmp_path}/lake/s.t", settings=known, **told)
    found = open_embedded_catalog(tmp_path / "lake").load_table("s.t").scan().to_arrow()
    assert found.column("c").to_pylist() == [time(23, 30), time(0, 5)]
    load(stage, str(tmp_path / "d"), settings=known, **told)
    found = DeltaTable(str(tmp_path / "d")).to_pyarrow_table()
    assert sorted(found.column("c").to_pylist()) == ["0.05", "23.30"]


def test_a_time_that_delta_was_told_to_keep(tmp_path: Path) -> None:
    """A schema that Delta cannot keep is refused, and no table is left."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,c\n1,23:30:00\n")
    with pytest.raises(Unsupported, match="Delta cannot keep"):
        load(
            f"{tmp_path}/in/",
            str(tmp_path / "d"),
            schema="id INT, c TIME",
            spark="local",
            settings=settings(tmp_path),
        )
    assert not (tmp_path / "d").exists()


def test_nan_by_another_name() -> None:
    """The text stands for NaN in columns of floats, beside NaN itself, and nowhere else."""
    rules = CastRules(nan_display="-")
    made = cast_text(pa.array(["-", " - ", "nan", "1.5", "-1", "--", None]), pa.float64(), rules)
    told = [None if one is None else repr(one) for one in made.values.to_pylist()]
    assert told == ["nan", "nan", "nan", "1.5", "-1.0", None, None]
    assert [cell.value for cell in made.refused] == ["--"]
    assert cast_text(pa.array(["-"]), pa.int64(), rules).refused
    assert cast_text(pa.array(["-"]), pa.string(), rules).values.to_pylist() == ["-"]
    assert infer_type(["-", "1.5"], rules) == pa.float64()
    assert isinstance(infer_type(["1", "2"], rules), Numeral)
    assert infer_type(["-", "x"], rules) == pa.string()


def test_what_nan_cannot_be() -> None:
    """The empty text is no spelling of NaN; NaN itself needs none."""
    assert nan_display("nAn") is None
    with pytest.raises(ValueError, match="empty"):
        nan_display(" ")


@pytest.mark.parametrize("quoted", [True, False], ids=["record by record", "quick"])
def test_nan_in_both_parsers(tmp_path: Path, quoted: bool) -> None:
    """In each parser; a marker of NULL goes first."""
    (tmp_path / "in").mkdir()
    more = '"x ""y"\n' if quoted else "x\n"
    (tmp_path / "in" / "a.csv").write_text(f"n,m,t\n-,1,{more}NA,2,{more}2.5,3,{more}")
    report = load(
        f"{tmp_path}/in/",
        str(tmp_path / "d"),
        format="csv",
        format_options={"nan_display": "-", "null_if": ("NA",), "header": True},
        spark="local",
        settings=settings(tmp_path),
    )
    assert report.rows_loaded == 3
    found = DeltaTable(str(tmp_path / "d")).to_pyarrow_table().sort_by("m").column("n").to_pylist()
    assert math.isnan(found[0])
    assert found[1:] == [None, 2.5]


def test_an_empty_nan_is_a_wrong_statement(tmp_path: Path) -> None:
    """From Python too it is an error that names the option."""
    with pytest.raises(StatementInvalid, match="nan_display"):
        load("in/", str(tmp_path / "t"), format="csv", format_options={"nan_display": ""})
