"""One way of loading a folder into Parquet or Delta, in a process of its own.

``python -m bench._load_ways WAY STAGE OUT FORMAT`` prints ``{"seconds": …, "rows": …}``. Sessions
are started before the clock is, except by the way ``cold``, which times the whole command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench._load_data import DDL, SCHEMA

CORES = 2


def _settings(out: str) -> object:
    from calque.config import load_settings

    return load_settings(flags={"ledger.url": f"{out}-ledger.db"}, environ={})


def calque(stage: str, out: str, kind: str, *, spark: str) -> tuple[float, int]:
    import calque as package

    if spark != "local":
        from calque.spark.session import SparkOptions, session

        warm = session(options=SparkOptions(master=spark))
        warm.sparkContext.parallelize(range(CORES), CORES).map(str).collect()
    began = time.perf_counter()
    report = package.load(
        stage,
        out,
        format=kind,
        schema=SCHEMA,
        on_error="continue",
        match_by="none" if kind == "csv" else "case_sensitive",
        spark=spark,
        settings=_settings(out),
    )
    return time.perf_counter() - began, report.rows_loaded


def plain_spark(stage: str, out: str, kind: str) -> tuple[float, int]:
    from calque.spark.session import SparkOptions, session

    spark = session(options=SparkOptions(master=f"local[{CORES}]", memory="1g"))
    spark.sparkContext.parallelize(range(CORES), CORES).map(str).collect()
    began = time.perf_counter()
    frame = spark.read.schema(DDL).format(kind).load(stage)
    frame.write.option("compression", "zstd").parquet(out)
    taken = time.perf_counter() - began
    return taken, spark.read.parquet(out).count()


def arrow(stage: str, out: str, kind: str) -> tuple[float, int]:
    """The limit: pyarrow in two plain processes, nothing around it."""
    Path(out).mkdir()
    files = sorted(map(str, Path(stage).iterdir()))
    began = time.perf_counter()
    halves = [
        subprocess.Popen([sys.executable, "-m", "bench._load_limit", kind, out, str(n), *part])
        for n, part in enumerate((files[::2], files[1::2]))
    ]
    assert all(half.wait() == 0 for half in halves)
    taken = time.perf_counter() - began
    import pyarrow.parquet as pq

    return taken, sum(pq.read_metadata(file).num_rows for file in Path(out).iterdir())


def duckdb(stage: str, out: str, kind: str) -> tuple[float, int]:
    import duckdb as database

    types = {
        "int64": "BIGINT",
        "double": "DOUBLE",
        "string": "VARCHAR",
        "date32[day]": "DATE",
        "timestamp[us]": "TIMESTAMP",
        "int32": "INTEGER",
        "bool": "BOOLEAN",
        "decimal128(12, 2)": "DECIMAL(12,2)",
    }
    columns = {field.name: types[str(field.type)] for field in SCHEMA}
    source = {
        "csv": f"read_csv('{stage}/*', header=false, columns={columns})",
        "json": f"read_json('{stage}/*', format='newline_delimited', columns={columns})",
        "parquet": f"read_parquet('{stage}/*')",
    }[kind]
    connection = database.connect(config={"threads": CORES, "memory_limit": "1GB"})
    began = time.perf_counter()
    connection.execute(
        f"COPY (SELECT * FROM {source}) TO '{out}' "
        "(FORMAT parquet, COMPRESSION zstd, PER_THREAD_OUTPUT)"
    )
    taken = time.perf_counter() - began
    (rows,) = connection.execute(f"SELECT count(*) FROM read_parquet('{out}/*')").fetchone()
    return taken, rows


def dlt(stage: str, out: str, kind: str) -> tuple[float, int]:
    import dlt as tool
    from dlt.sources.filesystem import filesystem, read_csv_duckdb

    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    reader = read_csv_duckdb(use_pyarrow=True, header=False, names=SCHEMA.names)
    files = filesystem(bucket_url=Path(stage).as_uri(), file_glob="*.csv") | reader
    pipeline = tool.pipeline(
        "bench",
        destination=tool.destinations.filesystem(Path(out).as_uri()),
        dataset_name="d",
        pipelines_dir=f"{out}-state",
    )
    began = time.perf_counter()
    pipeline.run(files.with_name("rows"), table_format="delta")
    taken = time.perf_counter() - began
    from deltalake import DeltaTable

    return taken, DeltaTable(f"{out}/d/rows").to_pyarrow_dataset().count_rows()


WAYS: dict[str, Callable[[str, str, str], tuple[float, int]]] = {
    "calque": lambda *args: calque(*args, spark=f"local[{CORES}]"),
    "calque-local": lambda *args: calque(*args, spark="local"),
    "spark": plain_spark,
    "limit": arrow,
    "duckdb": duckdb,
    "dlt": dlt,
}


def main() -> None:
    way, stage, out, kind = sys.argv[1:]
    seconds, rows = WAYS[way](stage, out, kind)
    print(json.dumps({"seconds": seconds, "rows": rows}))


if __name__ == "__main__":
    main()
