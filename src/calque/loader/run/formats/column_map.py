"""Which column of a file fills which column of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from calque.errors import InvalidInput
from calque.loader.model.plan import ColumnMatch
from calque.loader.run.formats.refusal import Code, FileRefused, shorten


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """For each target field the index of its column in the file; None where the file has none."""

    schema: pa.Schema
    sources: tuple[int | None, ...]
    width: int
    """The columns that a row of the file must have."""
    extra: tuple[int, ...] = ()
    """Columns of the file that fill nothing."""


def by_position(schema: pa.Schema, columns: Sequence[str]) -> ColumnMap:
    """The file's columns in order fill the listed ones, or all of the table."""
    order = list(columns) or list(schema.names)
    for name in order:
        if name not in schema.names:
            raise InvalidInput(
                f"the table has no column {name!r}", hint=f"Columns: {', '.join(schema.names)}."
            )
    sources = tuple(order.index(name) if name in order else None for name in schema.names)
    return ColumnMap(schema, sources, len(order))


def by_name(
    schema: pa.Schema,
    found: Sequence[str],
    match: ColumnMatch,
    columns: Sequence[str],
    file: str,
) -> ColumnMap:
    """The file's columns fill those of the same name; ``columns`` limits which are filled."""
    fold = str.casefold if match == "name_insensitive" else str
    index: dict[str, int] = {}
    for position, name in enumerate(found):
        if fold(name) in index:
            raise FileRefused.at(
                file,
                Code.NOT_THIS_FORMAT,
                f"two columns are named {name!r}",
                hint="Load by position, or make the names differ.",
                line=1,
            )
        index[fold(name)] = position
    wanted = set(columns) or set(schema.names)
    sources = tuple(index.get(fold(name)) if name in wanted else None for name in schema.names)
    if all(source is None for source in sources):
        raise FileRefused.at(
            file,
            Code.MISSING_COLUMN,
            f"no column of the file ({shorten(', '.join(found[:20]))}) is a column of the table",
            hint=f"Columns of the table: {', '.join(schema.names[:20])}.",
            line=1,
        )
    used = {source for source in sources if source is not None}
    extra = tuple(position for position in range(len(found)) if position not in used)
    return ColumnMap(schema, sources, len(found), extra)


def map_columns(
    schema: pa.Schema,
    found: Sequence[str] | None,
    match: ColumnMatch,
    columns: Sequence[str],
    file: str,
) -> ColumnMap:
    """By name where asked, for a file that names its columns; by position otherwise."""
    if match == "position":
        return by_position(schema, columns)
    if found is None:
        raise InvalidInput(
            "columns can be matched by name only where the file names them",
            hint="Set PARSE_HEADER = TRUE, or load by position.",
        )
    return by_name(schema, found, match, columns, file)


def with_extra(
    mapped: ColumnMap, found: Sequence[str] | None, kind: pa.DataType
) -> tuple[ColumnMap, tuple[str, ...]]:
    """The map with the file's other columns behind those of the table, and their names.

    For a rescue column, which takes what fills no other. Inside the map they have names that no
    table has; a name that comes twice is told by its position.
    """
    if found is None:
        return mapped, ()
    extra = mapped.extra or tuple(range(mapped.width, len(found)))
    fields = [pa.field(f"\0extra{index}", kind) for index in extra]
    names: list[str] = []
    for index in extra:
        taken = not found[index] or found[index] in names
        names.append(f"_c{index + 1}" if taken else found[index])
    schema = pa.schema([*mapped.schema, *fields])
    width = max(mapped.width, len(found))
    return ColumnMap(schema, (*mapped.sources, *extra), width), tuple(names)


def require(mapped: ColumnMap, file: str) -> None:
    """Every column that may not be NULL must come from the file."""
    for field, source in zip(mapped.schema, mapped.sources, strict=True):
        if source is None and not field.nullable:
            raise FileRefused.at(
                file,
                Code.MISSING_COLUMN,
                f"the column {field.name!r} may not be NULL and the file does not have it",
                line=1,
            )


def refuse_missing(mapped: ColumnMap, file: str) -> None:
    """For formats that are told to have every column."""
    missing = [
        field.name
        for field, source in zip(mapped.schema, mapped.sources, strict=True)
        if source is None
    ]
    if missing:
        raise FileRefused.at(
            file,
            Code.MISSING_COLUMN,
            f"the file has no column {', '.join(map(repr, missing[:20]))}",
            hint="MISSING_FIELD_AS = NULL fills it with NULL.",
        )
