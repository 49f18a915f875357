"""The tables there are: those of calque.toml, of its catalogs, and those that were loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from calque.config import Settings, TableSettings
from calque.errors import CalqueError
from calque.ledger import Ledger
from calque.ledger.loaded_tables import LoadedTable, list_loaded_tables
from calque.loader.commit.tables.open import address_of, tables_in_catalog


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table by the name that commands take, and where it is known from."""

    name: str
    format: str
    location: str | None
    known_from: str
    """``calque.toml``, ``catalog NAME`` or ``ledger``."""
    loads: int = 0
    rows_loaded: int = 0
    last_load: datetime | None = None


@dataclass(slots=True)
class KnownTables:
    """What was found, and which catalogs could not be asked."""

    tables: list[KnownTable] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


def list_tables(settings: Settings, ledger: Ledger | None) -> KnownTables:
    """Every table that is known, by name; none twice. No table is opened."""
    loaded = {} if ledger is None else {one.address: one for one in list_loaded_tables(ledger)}
    found = KnownTables()
    for name, table in settings.tables.items():
        address = address_of(name, table)
        found.tables.append(_configured(name, table, loaded.pop(address, None)))
    for catalog, properties in settings.catalogs.items():
        found.tables += _in_catalog(catalog, properties, settings, loaded, found.troubles)
    found.tables += [_loaded(one) for one in loaded.values() if one.is_made]
    found.tables.sort(key=lambda one: one.name)
    return found


def _configured(name: str, table: TableSettings, loaded: LoadedTable | None) -> KnownTable:
    where = table.location or (None if loaded is None else loaded.location)
    return _known(name, table.format, where, "calque.toml", loaded)


def _in_catalog(
    catalog: str,
    properties: Mapping[str, str],
    settings: Settings,
    loaded: dict[tuple[str, str], LoadedTable],
    troubles: list[str],
) -> Iterator[KnownTable]:
    told = {address_of(name, table) for name, table in settings.tables.items()}
    try:
        names = tables_in_catalog(catalog, properties)
    except CalqueError as error:
        troubles.append(f"the catalog {catalog} cannot be asked: {error.message}")
        return
    for name in names:
        address = (f"iceberg:{catalog}", name)
        if address not in told:
            one = loaded.pop(address, None)
            where = None if one is None else one.location
            yield _known(name, "iceberg", where, f"catalog {catalog}", one)


def _loaded(one: LoadedTable) -> KnownTable:
    format = "delta" if one.address[0] == "delta" else "iceberg"
    return _known(one.spelling, format, one.location, "ledger", one)


def _known(
    name: str, format: str, location: str | None, origin: str, loaded: LoadedTable | None
) -> KnownTable:
    if loaded is None:
        return KnownTable(name, format, location, origin)
    return KnownTable(
        name, format, location, origin, loaded.loads, loaded.rows, loaded.last_load_at
    )
