"""The schema of a stage: a few of its files are looked at, and it is said which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from calque.errors import CalqueError, ConditionNotMatch, DataError, NotFound
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.plan import Piece
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.formats.guard import refuse_crash
from calque.loader.run.formats.refusal import Code, FileRefused, NoSoundRecord
from calque.loader.run.formats.registry import CRASH_PRONE
from calque.loader.run.formats.registry import infer_schema as infer_file
from calque.loader.run.formats.registry import raw_schema as raw_file
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.formats.unify_schemas import unify_schemas
from calque.loader.run.operators import Operators
from calque.loader.run.workers.process import WorkerCrashed, WorkerDied, WorkerProcess

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
    schemas = []
    refused: list[CalqueError] = []
    unsound: list[NoSoundRecord] = []
    moved: list[CalqueError] = []
    with _file_inference(format, source_options, raw) as infer_one:
        for file in chosen:
            try:
                schemas.append(infer_one(file))
            except (ConditionNotMatch, NotFound) as error:
                moved.append(error)  # rewritten or removed since the listing: the load tells it
            except NoSoundRecord as error:
                unsound.append(error)  # what its records are worth is for the load to tell
            except CalqueError as error:
                if error.retryable:
                    raise
                refused.append(error)  # bad, or not ours to read: denied, in an archive
    if refused and not (skip_bad and schemas):
        raise refused[0]
    if moved and not schemas:
        raise moved[0]
    schema = unify_schemas(schemas)
    if not schema.names and unsound:
        raise unsound[0]
    if not schema.names:
        why = "no file has a record with columns" if chosen else "the staged files are empty"
        raise DataError(
            f"no schema can be inferred: {why}",
            hint="Make the table first, or give its columns.",
        )
    return Inferred(schema, tuple(file.location for file in chosen))


@contextmanager
def _file_inference(
    format: FormatOptions, source_options: Mapping[str, object] | None, raw: bool
) -> Iterator[Callable[[StagedFile], pa.Schema]]:
    """What infers one file after the other: here, or apart where a file may crash its library."""
    if format.kind in CRASH_PRONE:
        with closing(
            _ApartInference(partial(_infer_apart, format, dict(source_options or {}), raw))
        ) as apart:
            yield apart.infer
        return
    with closing(Operators(source_options)) as operators:
        yield partial(_infer_file, operators, format, raw)


class _ApartInference:
    """Infers in a worker process; one that a file brought down is replaced by the next."""

    def __init__(self, work: Callable[[StagedFile], pa.Schema]) -> None:
        self._work = work
        self._process: WorkerProcess[pa.Schema] | None = None

    def infer(self, file: StagedFile) -> pa.Schema:
        if self._process is None:
            self._process = WorkerProcess(self._work)
        try:
            return self._process.run(file, about=file.location)
        except WorkerDied as error:
            self.close()
            if isinstance(error, WorkerCrashed):
                raise refuse_crash(file.location, error) from error
            raise
        except RecursionError as error:  # a schema that does not even travel between processes
            raise FileRefused.at(
                file.location, Code.MALFORMED, "its columns are nested too deeply"
            ) from error

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.stop()
            self._process = None


def _infer_apart(
    format: FormatOptions,
    source_options: Mapping[str, object],
    raw: bool,
    file: StagedFile,
) -> pa.Schema:
    with closing(Operators(source_options)) as operators:
        return _infer_file(operators, format, raw, file)


def _infer_file(
    operators: Operators, format: FormatOptions, raw: bool, file: StagedFile
) -> pa.Schema:
    source = Source(*operators.at(file.location), Piece(file))
    return raw_file(source, format) if raw else _infer_distinct(source, format)


def _infer_distinct(source: Source, format: FormatOptions) -> pa.Schema:
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
