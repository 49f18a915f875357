"""A folder of very many objects renamed in one transaction: CPU of client, satellite, database."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from sqlalchemy import create_engine, text
from tests.servers.postgres import running_postgres

from bench.table import Row
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.open_project import open_project

_BUCKET = "bench"
_ROUNDS = 3
_MOST = 15.0
_FOLDERS = 100


def renames(base: Path, count: int) -> list[Row]:
    """On SQLite and on PostgreSQL."""
    with running_postgres() as server:
        url = server.database()
        return [
            _rename(base / "sqlite", None, count, time.process_time),
            _rename(base / "postgres", url, count, _with_server(url)),
        ]


def _rename(folder: Path, database: str | None, count: int, cpu: Callable[[], float]) -> Row:
    EmbeddedStore.create(folder, StoreOptions(database=database)).close()
    taken = []
    with open_project(folder) as project:
        project.create_bucket(_BUCKET)
        for number in range(count // _FOLDERS):
            project.upload(_BUCKET, f"seed/{number:06}", b"x")
        for number in range(_FOLDERS):
            project.copy_prefix(_BUCKET, "seed/", _BUCKET, f"0/{number:03}/")
        for turn in range(_ROUNDS):
            started = cpu()
            moved = project.move_prefix(_BUCKET, f"{turn}/", _BUCKET, f"{turn + 1}/")
            taken.append(cpu() - started)
            if moved.objects != count:
                raise SystemExit(f"{moved.objects} objects were renamed and not {count}")
    middle = statistics.median(taken)
    what = f"a folder of {count:,} objects renamed, {'postgresql' if database else 'sqlite'}"
    limit = _MOST * count / 100_000
    return Row(
        what, f"{middle:.1f} s of CPU", f"the limit {limit:.3g} s", middle / limit, "at most 1",
        middle <= limit,
    )  # fmt: skip


def _with_server(url: str) -> Callable[[], float]:
    """The CPU of this process and of all processes of the database server behind ``url``."""
    engine = create_engine(url)
    with engine.connect() as connection:
        data = connection.execute(text("SHOW data_directory")).scalar_one()
    engine.dispose()
    first = (Path(data) / "postmaster.pid").read_text().splitlines()[0]
    postmaster = psutil.Process(int(first))

    def used() -> float:
        mine = postmaster.cpu_times()
        # Those that have ended are counted with the postmaster, which waited for them.
        total = mine.user + mine.system + mine.children_user + mine.children_system
        for each in postmaster.children(recursive=True):
            times = each.cpu_times()
            total += times.user + times.system
        return float(total) + time.process_time()

    return used
