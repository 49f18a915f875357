"""The schema of a stage: a few of its files are looked at, and it is said which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from calque.errors import CalqueError, ConditionNotMatch, DataError, NotFound
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.plan import Piece
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.loader.run.formats.registry import infer_schema as infer_file
from calque.loader.run.formats.registry import raw_schema as raw_file
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.formats.unify_schemas import unify_schemas
from calque.loader.run.operators import Operators

SAMPLED = 10


@dataclass(frozen=True, slots=True)
class Inferred:
    """A schema, and the files it was read from."""

    schema: pa.Schema
    files: tuple[str, ...]


def infer_schema(
    files: Sequence[StagedFile],
    format: FormatOptions,
    source_options: Mapping[str, object] | None = None,
    *,
    sampled: int = SAMPLED,
    raw: bool = False,
    skip_bad: bool = False,
) -> Inferred:
    """The schema that holds the rows of the sampled files: first, last and evenly between.

    ``raw``: as a transformation sees the columns, text where the format knows no types.
    ``skip_bad``: a file that cannot be read tells nothing, as long as another one does. So does
    one that changed since it was listed; where all did, the error is that of the first.
    """
    chosen = sample_of([file for file in files if file.identity.size], sampled)
    operators = Operators(source_options)
    look = raw_file if raw else _distinct
    schemas, refused = [], []
    moved: list[CalqueError] = []
    try:
        for file in chosen:
            try:
                schemas.append(look(Source(*operators.at(file.location), Piece(file)), format))
            except FileRefused as error:
                refused.append(error)
            except (ConditionNotMatch, NotFound) as error:
                moved.append(error)  # rewritten or removed since the listing: the load tells it
    finally:
        operators.close()
    if refused and not (skip_bad and schemas):
        raise refused[0]
    if moved and not schemas:
        raise moved[0]
    schema = unify_schemas(schemas)
    if not schema.names:
        raise DataError(
            "no schema can be inferred: the staged files are empty",
            hint="Make the table first, or give its columns.",
        )
    return Inferred(schema, tuple(file.location for file in chosen))


def _distinct(source: Source, format: FormatOptions) -> pa.Schema:
    """The schema of a file; refused where two names differ by case alone: no table keeps both."""
    schema = infer_file(source, format)
    seen: set[str] = set()
    for name in schema.names:
        if name.casefold() in seen:
            raise FileRefused.at(
                source.location,
                Code.NOT_THIS_FORMAT,
                f"two columns are named {name!r}",
                hint="Make the names differ by more than case, or make the table first.",
                line=1,
            )
        seen.add(name.casefold())
    return schema


def sample_of(files: Sequence[StagedFile], count: int) -> list[StagedFile]:
    """At most ``count`` files, spread evenly from the first to the last."""
    if len(files) <= count:
        return list(files)
    step = (len(files) - 1) / (count - 1)
    return [files[round(index * step)] for index in range(count)]
