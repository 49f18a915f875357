"""Which tables are known, and what each tells of itself."""

from __future__ import annotations

from calque.config import LedgerSettings, Secret, Settings, TableSettings
from calque.ledger.configured import existing_ledger_of
from calque.loader.look.known_tables import list_tables
from calque.loader.look.table_summary import summarise_table
from tests.loader.loader import Place


def test_a_loaded_table_is_known_and_shown(place: Place) -> None:
    """On every kind of table and ledger: by the ledger alone, and under its configured name."""
    place.stage.mkdir()
    (place.stage / "a.csv").write_text("id,name\n1,x\n")
    place.load()
    settings = Settings(ledger=LedgerSettings(url=Secret(place.ledger)))
    opened = existing_ledger_of(settings)
    assert opened is not None
    with opened:
        (found,) = list_tables(place.settings, opened).tables
        assert (found.loads, found.rows_loaded, found.known_from) == (1, 1, "ledger")
        seen = summarise_table(found.name, place.settings)
        assert (seen.kind, seen.rows) == (found.format, 1)
        named = TableSettings(location=found.name.removeprefix("iceberg:"), format=found.format)
        (found,) = list_tables(Settings(tables={"a.b": named}), opened).tables
        assert (found.name, found.loads, found.known_from) == ("a.b", 1, "calque.toml")
