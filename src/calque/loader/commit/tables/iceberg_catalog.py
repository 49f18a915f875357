"""Iceberg catalogs: the embedded one of a folder, and those of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import SQLAlchemyError

from calque.errors import Unavailable
from calque.values import Backoff

_TRIES = 5
_BACKOFF = Backoff(first=0.05, factor=1.0, jitter=1.0)


def open_embedded_catalog(folder: Path) -> Catalog:
    """The catalog that lives in a folder as a SQLite file; made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    place = f"sqlite:///{folder}/catalog.db"
    return _open_catalog(
        lambda: SqlCatalog("calque", uri=place, warehouse=f"file://{folder}"), place
    )


def has_embedded_catalog(folder: Path) -> bool:
    """Whether a catalog lives in the folder."""
    return (folder / "catalog.db").is_file()


def open_configured_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """A catalog of the configuration, of whatever kind pyiceberg knows."""
    return _open_catalog(lambda: load_catalog(name, **properties), name)


def list_tables(catalog: Catalog) -> list[str]:
    """Every table of every namespace, nested ones too."""
    found: list[str] = []
    waiting = list(catalog.list_namespaces())
    while waiting:
        namespace = waiting.pop()
        found += [".".join(one) for one in catalog.list_tables(namespace)]
        # Catalogs without nested namespaces list the top again, or the namespace itself.
        waiting += [one for one in catalog.list_namespaces(namespace) if len(one) > len(namespace)]
    return sorted(set(found))


def _open_catalog(open_it: Callable[[], Catalog], name: str) -> Catalog:
    for attempt in range(1, _TRIES + 1):
        try:
            return open_it()
        except SQLAlchemyError as error:
            # Two that make the catalog at once: the one that comes too late finds its tables made.
            if attempt == _TRIES:
                raise Unavailable(f"the catalog {name} cannot be opened: {_why(error)}") from error
            _BACKOFF.sleep(attempt)
    raise AssertionError("unreachable")


def _why(error: SQLAlchemyError) -> str:
    """The database's own words, without the statement and its values."""
    return str(getattr(error, "orig", None) or type(error).__name__)
