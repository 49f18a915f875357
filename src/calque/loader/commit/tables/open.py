"""From a table's name to the table: a name of calque.toml, a path, or ``iceberg:`` and a path.

- ``warehouse.sales``: ``[tables."warehouse.sales"]`` of calque.toml;
- ``s3://lake/sales`` or ``./lake/sales``: a Delta table at that place;
- ``iceberg:./lake/shop.sales``: table ``shop.sales`` (``default.…`` without a dot) in the folder
  ``./lake``, whose catalog is the SQLite file ``catalog.db`` in it.

A new kind of table is a ``Lake`` (``base``) and is opened here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from calque.config import Settings, TableSettings
from calque.errors import ConfigInvalid, InvalidInput, MissingExtra, NotFound, Unsupported
from calque.loader.commit.tables.base import Lake
from calque.loader.request.service_options import service_options

_NAME = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*\Z")
_DELTA_MISREADS = re.compile(r"(%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f])|(?<!file)://.*?([#?])")
"""deltalake takes ``a%41`` for ``aA`` in some places and not in others: one table's commits would
go into the log of another."""
_ICEBERG_MISREADS = re.compile(r"[#?\x00-\x1f\x7f]")
"""pyiceberg takes locations for URLs, and what follows these for no part of the path."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as the user names it."""

    text: str

    def __post_init__(self) -> None:
        if not self.text or "\0" in self.text:
            raise InvalidInput("a table needs a name or a location")


def open_table(name: str, settings: Settings, *, must_exist: bool = False) -> Lake:
    """The table of this name; nothing is read yet.

    ``must_exist``: for those who only look. The folder of an embedded catalog is not made then, and
    NotFound says that there is none.
    """
    text = TableName(name).text
    if text in settings.tables:
        return _open_configured(text, settings.tables[text], settings, must_exist)
    if text.startswith("iceberg:"):
        return _open_embedded_iceberg(text, must_exist=must_exist)
    text = text.removeprefix("delta:")
    if _NAME.fullmatch(text) and not os.path.exists(text):
        close = get_close_matches(text, settings.tables, n=1)
        raise ConfigInvalid(
            f"there is no table {text!r} in the configuration",
            hint=f"Did you mean {close[0]!r}?"
            if close
            else f'Describe it under [tables."{text}"] in calque.toml, or give a path: ./{text}',
        )
    return _delta(text, text, {})


def address_of(name: str, table: TableSettings) -> tuple[str, str]:
    """Catalog and address by which the ledger knows a table of the configuration."""
    if table.format == "delta":
        place = table.location or ""
        if "://" in place and not place.startswith("file://"):
            return "delta", place.rstrip("/")
        return "delta", "file://" + os.path.realpath(place.removeprefix("file://"))
    if table.catalog is not None:
        return f"iceberg:{table.catalog}", ".".join(_identifier(table.identifier or name))
    folder, _, last = (table.location or "").rstrip("/").rpartition("/")
    path = Path(folder.removeprefix("file://") or ".").resolve()
    return f"iceberg:{path}", ".".join(_identifier(last))


def tables_in_catalog(name: str, properties: Mapping[str, str]) -> list[str]:
    """The names of the tables in a catalog of the configuration, namespaces before them."""
    try:
        from calque.loader.commit.tables.errors import ICEBERG, map_errors
        from calque.loader.commit.tables.iceberg_catalog import (
            list_tables,
            open_configured_catalog,
        )
    except ImportError as error:
        raise MissingExtra.of("iceberg", "an Iceberg catalog") from error
    with map_errors(ICEBERG, name):
        return list_tables(open_configured_catalog(name, properties))


def _open_configured(name: str, table: TableSettings, settings: Settings, must_exist: bool) -> Lake:
    section = f'[tables."{name}"]'
    if table.format == "delta":
        if table.location is None:
            raise ConfigInvalid(f"{section} needs a location")
        options = service_options(table.location, table.options, section)
        return _delta(table.location, name, options, words=_words(name))
    if table.catalog is None:
        if table.location is None:
            raise ConfigInvalid(f"{section} needs a catalog or a location")
        return _open_embedded_iceberg(
            f"iceberg:{table.location}", display=name, must_exist=must_exist
        )
    properties = settings.catalogs.get(table.catalog)
    if properties is None:
        raise ConfigInvalid(f"{section} names a catalog that is not there: {table.catalog}")
    return _open_in_catalog(name, table.catalog, table, properties)


def _words(name: str) -> tuple[str, str]:
    """Database and table of a name of the configuration."""
    database, _, table = name.rpartition(".")
    return (database, table) if database and table else ("default", name)


def _delta(
    location: str,
    display: str,
    options: Mapping[str, object],
    words: tuple[str, str] | None = None,
) -> Lake:
    try:
        from calque.loader.commit.tables.delta import DeltaLake
    except ImportError as error:
        raise MissingExtra.of("delta", "a Delta table") from error
    lake = DeltaLake(location, display=display, options=options, words=words)
    if not lake.root.startswith(("calque://", "memory://")):  # there the log is kept by us
        _refuse_misread(lake.root, _DELTA_MISREADS, "deltalake")
    return lake


def _open_embedded_iceberg(
    text: str, *, display: str | None = None, must_exist: bool = False
) -> Lake:
    folder, _, name = text.removeprefix("iceberg:").rstrip("/").rpartition("/")
    path = Path(folder.removeprefix("file://") or ".").resolve()
    _refuse_unknown_home(folder, display or text)
    if "://" in folder and not folder.startswith("file://"):
        raise ConfigInvalid(
            f"an embedded Iceberg catalog lives in a local folder, not at {folder}",
            hint="Describe a catalog under [catalogs.NAME] and the table under [tables.NAME].",
        )
    identifier = _identifier(name)
    if len(identifier) > 2:
        raise InvalidInput(
            f"an embedded Iceberg catalog has namespaces of one level, not {name!r}",
            hint="Spell it iceberg:FOLDER/namespace.table.",
        )
    _refuse_misread(f"{path}/{name}", _ICEBERG_MISREADS, "pyiceberg")
    try:
        from calque.loader.commit.tables.iceberg import IcebergLake
        from calque.loader.commit.tables.iceberg_catalog import (
            has_embedded_catalog,
            open_embedded_catalog,
        )
    except ImportError as error:
        raise MissingExtra.of("iceberg", "an Iceberg table") from error
    if must_exist and not has_embedded_catalog(path):
        raise NotFound(f"there is no Iceberg catalog in {path}", hint="Check its spelling.")
    return IcebergLake(
        open_embedded_catalog(path),
        identifier,
        catalog_name=f"iceberg:{path}",
        display=display or text,
    )


def _open_in_catalog(
    name: str, catalog_name: str, table: TableSettings, properties: Mapping[str, str]
) -> Lake:
    try:
        from calque.loader.commit.tables.errors import ICEBERG, map_errors
        from calque.loader.commit.tables.iceberg import IcebergLake
        from calque.loader.commit.tables.iceberg_catalog import open_configured_catalog
    except ImportError as error:
        raise MissingExtra.of("iceberg", "an Iceberg table") from error
    _refuse_unknown_home(table.location or properties.get("warehouse") or "", name)
    if table.location is not None:
        _refuse_misread(table.location, _ICEBERG_MISREADS, "pyiceberg")
    with map_errors(ICEBERG, name):
        catalog = open_configured_catalog(catalog_name, properties)
    return IcebergLake(
        catalog,
        _identifier(table.identifier or name),
        catalog_name=f"iceberg:{catalog_name}",
        display=name,
        location=table.location,
        options=table.options,
    )


def _refuse_unknown_home(location: str, display: str) -> None:
    """Refuse a place that only calque knows: Iceberg's library reads and writes metadata itself."""
    scheme = location.partition("://")[0]
    if scheme in ("calque", "memory"):
        raise Unsupported(
            f"table {display}: an Iceberg table cannot live at {scheme}://, "
            "which its library does not know",
            hint="Make it a Delta table there, or keep the Iceberg table on a file system, S3, "
            "Google Cloud Storage or Azure.",
        )


def _refuse_misread(location: str, misread: re.Pattern[str], library: str) -> None:
    """Refuse a place that the table's library would take for another."""
    found = misread.search(location)
    if found is not None:
        raise Unsupported(
            f"a table cannot live at {location}: its library, {library}, does not read "
            f"{found[found.lastindex or 0]!r} in a path as it stands",
            hint="Give the table a place without it.",
        )


def _identifier(name: str) -> tuple[str, ...]:
    parts = tuple(name.split("."))
    if not all(parts):
        raise InvalidInput(f"{name!r} is no table name", hint="Spell it namespace.table.")
    return parts if len(parts) > 1 else ("default", *parts)
