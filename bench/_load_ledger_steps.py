"""The steps that ``load_ledger`` measures, each run in a process of its own."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa

from bench._commands import peak_memory
from calque.config import Settings
from calque.errors import NotFound
from calque.ledger import Ledger, TableKey, TableRow, open_ledger
from calque.ledger.claim import LoadStart, Wanted, claim
from calque.ledger.files import scan
from calque.ledger.identity import micros
from calque.ledger.manifest import LoadedFile, Manifest
from calque.ledger.prepare import prepare
from calque.ledger.schema import files
from calque.ledger.tables import register_table
from calque.loader.commit.recovery import recover
from calque.loader.commit.tables import Change, Lake, Mark, open_table
from calque.loader.model.data_file import ColumnStats, DataFile
from calque.loader.model.outcome import Status
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.compare import Comparison
from calque.loader.plan.stage import Stage
from calque.loader.report import ResultRows
from calque.loader.request.request import LoadRequest
from calque.values import MIB, SourceIdentity

KEY = TableKey("delta", "file:///bench", "id")
STAMP = datetime(2026, 1, 1, tzinfo=UTC)
PREFIX = "s3://landing/sales/2026/"
FILLED = (
    *("table_number", "location", "size", "etag", "last_modified", "verified_at", "expires_at"),
    *("load_id", "rows", "errors", "loaded_at", "table_version"),
)


class Listed(Stage):
    """A listing as a service would give it, made as it is read."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._files = ()
        self._single = None
        self.ignored = 0
        self.unnamed = []

    @property
    def prefix(self) -> str:
        return PREFIX

    def list(self) -> Iterator[StagedFile]:
        for number in range(self._count):
            name = f"part-{number:09d}.csv"
            place = PREFIX + name
            identity = SourceIdentity(place, 1024, f'"{number:032x}"', None, STAMP)
            yield StagedFile(place, name, identity)


def fill(where: str, count: str) -> dict[str, float]:
    """A ledger that has loaded every file."""
    with open_ledger(where) as ledger:
        table = register_table(ledger, KEY)
        now = ledger.now()
        marks = ", ".join("?" * len(FILLED))
        insert = f"INSERT INTO {files.name} ({', '.join(FILLED)}) VALUES ({marks})"
        same = (micros(STAMP), now, now + ledger.life, "load", 10, 0, now, 1)
        for start in range(0, int(count), 50_000):
            rows = [
                (table.number, f"{PREFIX}part-{number:09d}.csv", 1024, f'"{number:032x}"', *same)
                for number in range(start, min(start + 50_000, int(count)))
            ]
            with ledger.write() as connection:
                connection.exec_driver_sql(insert, rows)
    return {}


def compare(where: str, count: str) -> dict[str, float]:
    """The product's way: both streams joined, a result row for every file."""
    with open_ledger(where) as ledger:
        table = register_table(ledger, KEY)
        request = LoadRequest(stage=PREFIX, into="x")
        results = ResultRows()
        begun = time.perf_counter()
        for _ in Listed(int(count)).list():
            pass
        listing = time.perf_counter() - begun
        spent, begun = time.process_time(), time.perf_counter()
        for one in Comparison(Listed(int(count)), request, ledger, table, _read_none):
            assert one.status is Status.SKIPPED_LOADED
            results.skip(one.file.location, one.file.name, one.status._value_, 1024, "loaded")
        seconds = time.perf_counter() - begun
        assert len(results) == int(count)
        assert "pyspark" not in sys.modules, "nothing to load, so no Spark"
    cpu = time.process_time() - spent
    return {
        "seconds": seconds,
        "listing": listing,
        "cpu": cpu,
        "megabytes": _megabytes(),
    }


def naive(where: str, count: str) -> dict[str, float]:
    """The obvious way: every record in a dict, then look each file up."""
    with open_ledger(where) as ledger:
        table = register_table(ledger, KEY)
        begun = time.perf_counter()
        known = {one.location: one for one in scan(ledger, table)}
        results = [
            (file.location, known[file.location].etag == file.identity.etag)
            for file in Listed(int(count)).list()
        ]
        assert all(same for _, same in results)
        return {"seconds": time.perf_counter() - begun, "megabytes": _megabytes()}


def list_local(where: str, count: str) -> dict[str, float]:
    """A local stage as it is listed for a load, and the same files by scandir and stat alone.

    CPU seconds, the least of several rounds in turn; then those of comparing it, nothing new.
    """
    folder, number = Path(where), int(count)
    for start in range(0, number, 1000):
        day = folder / f"day={start // 1000:05d}"
        day.mkdir(parents=True)
        for at in range(start, min(start + 1000, number)):
            (day / f"part-{at:07d}.csv").touch()
    stage = Stage(f"{where}/", Settings())
    with open_ledger(f"{where}.db") as ledger:
        table = register_table(ledger, KEY)
        _note_loaded(ledger, table, stage.list())
        request = LoadRequest(stage=f"{where}/", into="x")
        works: dict[str, Callable[[], int]] = {
            "bare": lambda: _scan_and_stat(folder),
            "listing": lambda: sum(1 for _ in stage.list()),
            "compared": lambda: sum(
                one.status is Status.SKIPPED_LOADED
                for one in Comparison(stage, request, ledger, table, _read_none)
            ),
        }
        least = dict.fromkeys(works, float("inf"))
        for _ in range(3):
            for name, work in works.items():
                spent = time.process_time()
                assert work() == number
                least[name] = min(least[name], time.process_time() - spent)
    return {**least, "megabytes": _megabytes()}


def _read_none(path: str) -> Iterator[bytes]:
    """Nothing here was loaded by a copy."""
    raise NotFound(path)


def _note_loaded(ledger: Ledger, table: TableRow, staged: Iterator[StagedFile]) -> None:
    now = ledger.now()
    columns = (*FILLED, "token")
    marks = ", ".join("?" * len(columns))
    insert = f"INSERT INTO {files.name} ({', '.join(columns)}) VALUES ({marks})"
    # Verified well after the files were written, as those of a stage are that is looked at again.
    same = (now + 10_000_000, now + ledger.life, "load", 10, 0, now, 1)
    while chunk := list(islice(staged, 50_000)):
        rows = [
            (table.number, one.location, one.identity.size, None,
             micros(one.identity.last_modified), *same, one.identity.token)
            for one in chunk
        ]  # fmt: skip
        with ledger.write() as connection:
            connection.exec_driver_sql(insert, rows)


def _scan_and_stat(folder: Path) -> int:
    """What no listing of files with their sizes and times can go below in Python."""
    count, folders = 0, [str(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


SCHEMA = pa.schema([(f"c{number}", pa.int64()) for number in range(12)])


def commit(where: str, kind: str, count: str) -> dict[str, float]:
    """One commit of many data files through our adapter, and the same again without encoding it."""
    lake = _lake(where, kind)
    stats = {f"c{number}": ColumnStats(0, 1, 1000) for number in range(12)}
    data = [
        DataFile(f"{lake.data_prefix}bench-{number:05d}.parquet", 1000, 10, columns=stats)
        for number in range(int(count))
    ]
    begun = time.perf_counter()
    snapshot = lake.open()
    actions = tuple(lake.encode(file, snapshot.target) for file in data)
    snapshot.commit(Change(load_id="bench", mark=Mark.COMMITTED, actions=actions))
    seconds = time.perf_counter() - begun
    again = lake.open()
    begun = time.perf_counter()
    again.commit(Change(load_id="again", mark=Mark.COMMITTED, actions=actions))
    return {"seconds": seconds, "library": time.perf_counter() - begun}


def recover_dead(where: str) -> dict[str, float]:
    """Roll a prepared load forward whose owner is gone."""
    lake = _lake(where, "delta")
    snapshot = lake.open()
    with open_ledger(Path(where) / "ledger.db") as ledger:
        table = register_table(ledger, lake.key(snapshot))
        sources = [
            SourceIdentity(f"{PREFIX}{number:09d}", 10, f"e{number}") for number in range(1000)
        ]
        start = LoadStart(load_id="dead", owner="gone/1/1", lease_seconds=-1, base_version=0)
        claim(ledger, table, start, [Wanted(one) for one in sources])
        loaded = tuple(LoadedFile(one, 10, 0, None, ledger.now()) for one in sources)
        prepare(ledger, "dead", "gone/1/1", Manifest(sources=loaded))
        begun = time.perf_counter()
        done = recover(ledger, lake, table, "me/2/2", 60)
        seconds = time.perf_counter() - begun
        assert [one.mark for one in done] == [Mark.COMMITTED]
    begun = time.perf_counter()
    lake.open().commit(Change(load_id="empty", mark=Mark.COMMITTED))
    return {"seconds": seconds, "library": time.perf_counter() - begun}


def _lake(where: str, kind: str) -> Lake:
    place = f"{where}/t" if kind == "delta" else f"iceberg:{where}/t"
    lake = open_table(place, Settings())
    lake.draft(SCHEMA, ()).publish()
    return lake


def _megabytes() -> float:
    return peak_memory(os.getpid()) / MIB


STEPS: dict[str, Callable[..., dict[str, float]]] = {
    "fill": fill,
    "compare": compare,
    "naive": naive,
    "list": list_local,
    "commit": commit,
    "recover": recover_dead,
}

if __name__ == "__main__":
    print(json.dumps(STEPS[sys.argv[1]](*sys.argv[2:])))
