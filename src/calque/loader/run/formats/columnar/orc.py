"""ORC: stripe by stripe, columns by name or position, cast strictly."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyarrow import orc

from calque.loader.model.file_formats import OrcFormat
from calque.loader.run.formats.columnar.batch_caster import BatchCaster
from calque.loader.run.formats.guard import first_line
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.loader.run.formats.staged_source import Source


class OrcReader:
    """Reads one ORC file; a record is a row, and there are no lines."""

    def __init__(self, source: Source, spec: ReadSpec) -> None:
        assert isinstance(spec.format, OrcFormat)
        self._source = source
        self._spec = spec
        self._missing = spec.format.missing_field
        self.extent = Extent()

    def read(self) -> Iterator[ParsedBatch]:
        if self._source.size == 0:
            return
        file = _open(self._source)
        caster = BatchCaster(self._source.location, self._spec, file.schema, self._missing)
        for index in range(file.nstripes):
            try:
                batch = file.read_stripe(index, columns=caster.wanted_columns)
                parsed = caster.parse(batch, self.extent)
            except (pa.ArrowException, OSError) as error:
                raise FileRefused.at(
                    self._source.location,
                    Code.MALFORMED,
                    f"the ORC file is damaged in stripe {index + 1}: {first_line(error)}",
                ) from error
            yield parsed


def infer_schema(source: Source, format: OrcFormat) -> pa.Schema:
    """The file's own schema."""
    return pa.schema(list(_open(source).schema))


def _open(source: Source) -> orc.ORCFile:
    try:
        return orc.ORCFile(pa.PythonFile(source.open(), mode="r"))
    except (pa.ArrowException, OSError) as error:
        raise FileRefused.at(
            source.location,
            Code.NOT_THIS_FORMAT,
            f"this is not an ORC file: {first_line(error)}",
            hint="Name the format that the file has, or stage it again if it was cut off.",
        ) from error
