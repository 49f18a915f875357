"""What two processes with nothing but pyarrow can do: parse files, write zstd Parquet."""

from __future__ import annotations

import sys
from itertools import islice

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq

from bench._load_data import SCHEMA

TOGETHER = 4
"""Files of 10 MB that share an output file."""


def read(kind: str, file: str) -> pa.Table:
    if kind == "parquet":
        return pq.read_table(file, use_threads=False)
    if kind == "json":
        return arrow_json.read_json(
            file,
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=4 << 20),
            parse_options=arrow_json.ParseOptions(explicit_schema=_json_schema()),
        ).cast(SCHEMA)
    return arrow_csv.read_csv(
        file,
        read_options=arrow_csv.ReadOptions(
            use_threads=False, block_size=4 << 20, column_names=SCHEMA.names
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types={field.name: field.type for field in SCHEMA}
        ),
    )


def _json_schema() -> pa.Schema:
    index = SCHEMA.get_field_index("day")
    return SCHEMA.set(index, pa.field("day", pa.string()))


def main() -> None:
    kind, out, number, *files = sys.argv[1:]
    rest = iter(files)
    count = 0
    while group := list(islice(rest, TOGETHER)):
        table = pa.concat_tables(read(kind, file) for file in group)
        pq.write_table(
            table,
            f"{out}/{number}-{count}.parquet",
            compression="zstd",
            compression_level=1,
            use_dictionary=["colour", "day", "moment", "count", "note"],
        )
        count += 1


if __name__ == "__main__":
    main()
