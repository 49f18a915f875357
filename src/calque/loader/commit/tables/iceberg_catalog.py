"""Iceberg catalogs: the embedded one of a folder, and those of the configuration."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import SQLAlchemyError

from calque.errors import Unavailable


def open_embedded_catalog(folder: Path) -> Catalog:
    """The catalog that lives in a folder as a SQLite file; made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    place = f"sqlite:///{folder}/catalog.db"
    return _open_catalog(
        lambda: SqlCatalog("calque", uri=place, warehouse=f"file://{folder}"), place
    )


def open_configured_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """A catalog of the configuration, of whatever kind pyiceberg knows."""
    return _open_catalog(lambda: load_catalog(name, **properties), name)


def _open_catalog(open_it: Callable[[], Catalog], name: str) -> Catalog:
    for left in reversed(range(5)):
        try:
            return open_it()
        except SQLAlchemyError as error:
            # Two that make the catalog at once: the one that comes too late finds its tables made.
            if not left:
                raise Unavailable(f"the catalog {name} cannot be opened: {_why(error)}") from error
            time.sleep(0.05 * random.random())
    raise AssertionError("unreachable")


def _why(error: SQLAlchemyError) -> str:
    """The database's own words, without the statement and its values."""
    return str(getattr(error, "orig", None) or type(error).__name__)
