"""Data for the benchmarks of loads: twelve typed columns, in many files."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.int64()),
        ("amount", pa.float64()),
        ("colour", pa.string()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us")),
        ("count", pa.int32()),
        ("share", pa.float64()),
        ("open", pa.bool_()),
        ("price", pa.decimal128(12, 2)),
        ("note", pa.string()),
    ]
)
DDL = (
    "id BIGINT, customer BIGINT, amount DOUBLE, colour STRING, name STRING, day DATE, "
    "moment TIMESTAMP_NTZ, count INT, share DOUBLE, open BOOLEAN, price DECIMAL(12,2), note STRING"
)
ROWS = 80_000
"""Rows of a file: about 10 MB of CSV."""


def make_csv(folder: Path, files: int, *, bad: float = 0.0) -> int:
    """Files of CSV without a header; ``bad`` of their rows have a word for a number."""
    rows = _rows(bad)
    for number in range(files):
        first = number * ROWS
        lines = (f"{first + index},{row}\n" for index, row in enumerate(rows))
        (folder / f"part-{number:05d}.csv").write_text("".join(lines))
    return files * ROWS


def make_json(folder: Path, files: int, *, bad: float = 0.0) -> int:
    """The same rows as NDJSON; ``bad`` of them have a word for a number."""
    table = _table(0)
    chosen = random.Random(12)
    texts = []
    for row in table.to_pylist():
        row.pop("id")
        if chosen.random() < bad:
            row["customer"] = "oops"
        row["day"], row["moment"] = row["day"].isoformat(), row["moment"].isoformat()
        row["price"] = float(row["price"])
        texts.append(json.dumps(row)[1:])
    for number in range(files):
        first = number * ROWS
        lines = (f'{{"id": {first + index}, {text}\n' for index, text in enumerate(texts))
        (folder / f"part-{number:05d}.json").write_text("".join(lines))
    return files * ROWS


def make_parquet(folder: Path, files: int) -> int:
    """The same rows as Parquet of the table's own types."""
    for number in range(files):
        pq.write_table(_table(number), folder / f"part-{number:05d}.parquet", compression="snappy")
    return files * ROWS


def _table(number: int) -> pa.Table:
    first = number * ROWS
    text = "".join(f"{first + index},{row}\n" for index, row in enumerate(_rows(0.0)))
    return arrow_csv.read_csv(
        io.BytesIO(text.encode()),
        read_options=arrow_csv.ReadOptions(column_names=SCHEMA.names),
        convert_options=arrow_csv.ConvertOptions(
            column_types={field.name: field.type for field in SCHEMA}
        ),
    )


def _rows(bad: float) -> list[str]:
    chosen = random.Random(11)
    rows = []
    for _ in range(ROWS):
        customer = "oops" if chosen.random() < bad else str(chosen.randrange(10**9))
        rows.append(
            f"{customer},{chosen.random() * 1000:.4f},{chosen.choice(['red', 'green', 'blue'])},"
            f"name-{chosen.randrange(10**6)},2024-{chosen.randint(1, 12):02d}-"
            f"{chosen.randint(1, 28):02d},2024-03-{chosen.randint(1, 28):02d} "
            f"{chosen.randrange(24):02d}:{chosen.randrange(60):02d}:00,{chosen.randrange(100)},"
            f"{chosen.random():.6f},{chosen.choice(['true', 'false'])},"
            f"{chosen.randrange(10**6)}.{chosen.randint(10, 99)},"
            f"some words of a note {chosen.randrange(1000)}"
        )
    return rows
