"""A big file cut over several tasks is one file again: rows, counts, hash, error places."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from calque.loader.model.content_hash import BLOCK, content_hash
from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import CsvFormat, JsonFormat
from calque.loader.model.outcome import Status
from calque.loader.model.plan import Engine
from calque.loader.run.cut_into_tasks import cut
from calque.loader.run.engines.local import LocalEngine
from calque.loader.run.engines.spark import SparkEngine
from calque.values import MIB
from tests.loader.run.conftest import CONTINUE, World, data_files, outcomes

SIZE = BLOCK
"""Pieces begin at blocks of the content hash, so this is the smallest."""
ROWS = 33_000
"""Few and long: pieces are cut by bytes, and what rows cost is not what is tried."""


@pytest.fixture(params=["local", "spark"])
def cutting(request: pytest.FixtureRequest) -> Engine:
    if request.param == "local":
        return LocalEngine(2, task_bytes=SIZE)
    return SparkEngine(request.getfixturevalue("spark"), task_bytes=SIZE)


def big(bad: float = 0.0, text: str = "some text") -> tuple[bytes, int, int]:
    """About 14 MB, how many rows of it are good, and how many are not."""
    chosen = random.Random(3)
    lines, errors = [], 0
    for number in range(ROWS):
        spoiled = chosen.random() < bad
        errors += spoiled
        lines.append(f"{'oops' if spoiled else number},{text} {number % 1000} {'x' * 400}\n")
    data = "".join(lines).encode()
    return data, ROWS - errors, errors


def test_cut_equals_uncut(world: World, cutting: Engine) -> None:
    """The same rows, errors at the same lines, and the hash of the whole file."""
    data, good, bad = big(0.001)
    file = world.put("big.csv", data)
    plan = world.plan([file], on_error=CONTINUE)
    assert len(cut(plan, 2, SIZE)) >= 2
    whole = outcomes(list(LocalEngine(1).run(plan)))["big.csv"]
    results = list(cutting.run(plan))
    joined = outcomes(results)["big.csv"]
    assert len(data_files(results)) >= 2
    assert (joined.rows_loaded, joined.error_count) == (good, bad)
    assert list(joined.errors) == list(whole.errors)
    assert joined.content_hash == whole.content_hash == content_hash([data])
    assert joined.status is Status.PARTIALLY_LOADED
    assert len({row["a"] for row in world.rows(results)}) == good


def test_cut_inside_quotes(world: World, cutting: Engine) -> None:
    """Where cuts fall inside of quoted fields: nothing lost or doubled, and the hash is right."""
    text = (b"12," + b"a" * 500 + b"\n") * 4000
    data = b"0,x\n" + (b'1,"' + text + b'"\n') * 6
    file = world.put("quoted.csv", data)
    results = list(cutting.run(world.plan([file])))
    told = outcomes(results)["quoted.csv"]
    assert (told.status, told.rows_loaded, told.error_count) == (Status.LOADED, 7, 0)
    assert [row["b"] for row in world.rows(results) if row["a"]] == [text.decode()] * 6
    assert told.content_hash == content_hash([data])


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2))])
def test_only_torn_pieces_are_read_again(world: World, seed: int) -> None:
    """Text with line ends and quotes in most fields: as if read whole, in pieces to the end."""
    chosen = random.Random(seed)
    lines = []
    for number in range(9_000):
        words = chosen.choices(["1,2\n", 'a""b', "\r\n", "x" * 250, '"",""', "7\n8,9\n"], k=60)
        field = "".join(words) if chosen.random() < 0.9 else "plain"
        lines.append(f'{number},"{field}"\n')
    lines.insert(7_000, 'oops,"y\n1,2"\n')
    data = "".join(lines).encode()
    file = world.put("text.csv", data)
    plan = world.plan([file], on_error=CONTINUE)
    tasks = cut(plan, 2, SIZE)
    assert len(tasks) > 2
    whole = outcomes(list(LocalEngine(1).run(plan)))["text.csv"]
    results = list(LocalEngine(2, task_bytes=SIZE).run(plan))
    told = outcomes(results)["text.csv"]
    assert (told.rows_loaded, told.error_count) == (9_000, 1)
    assert (list(told.errors), told.content_hash) == (list(whole.errors), whole.content_hash)
    assert sorted(row["a"] for row in world.rows(results)) == list(range(9_000))
    assert len(data_files(results)) == len(tasks), "no task has read the file as a whole"


def test_cut_inside_the_last_record(world: World) -> None:
    """What follows a cut is no row of its own where the last record runs over it to the end."""
    line = b"1," + b"a" * 509 + b"\n"
    begin = 2 * SIZE // len(line) - 1
    data = line * begin + b'7,"' + b"b" * (2 * SIZE - len(line) * begin - 3) + b'\n8,x"\n'
    results = list(LocalEngine(2, task_bytes=SIZE).run(world.plan([world.put("f.csv", data)])))
    told = outcomes(results)["f.csv"]
    assert (told.rows_loaded, told.error_count) == (begin + 1, 0)
    assert {row["a"] for row in world.rows(results)} == {1, 7}


def test_skip_file_over_pieces(world: World) -> None:
    """One bad row in one piece leaves out the rows of every piece."""
    data, _, _ = big()
    file = world.put("big.csv", data + b"bad,row\n")
    policy = ErrorPolicy(ErrorMode.SKIP_FILE)
    results = list(LocalEngine(2, task_bytes=SIZE).run(world.plan([file], on_error=policy)))
    told = outcomes(results)["big.csv"]
    assert (told.status, told.rows_loaded, told.error_count) == (Status.FAILED, 0, 1)
    assert told.rows_parsed == ROWS + 1
    assert told.errors[0].line == told.errors[0].record == ROWS + 1
    assert data_files(results) == []


def test_header_and_json(world: World) -> None:
    """Later pieces know the header of CSV; NDJSON is cut as well."""
    engine = LocalEngine(2, task_bytes=SIZE)
    text, rows = b"x" * 300, range(30_000)
    file = world.put("big.csv", b"b,a\n" + b"".join(b"%s,%d\n" % (text, n) for n in rows))
    plan = world.plan([file], format=CsvFormat(parse_header=True), match="name")
    results = list(engine.run(plan))
    assert outcomes(results)["big.csv"].rows_loaded == len(rows)
    assert len(data_files(results)) > 1
    lines = b"".join(b'{"a":%d,"b":"%s"}\n' % (n, text) for n in rows)
    plan = world.plan([world.put("big.json", lines)], format=JsonFormat(), match="name")
    results = list(engine.run(plan))
    assert outcomes(results)["big.json"].rows_loaded == len(rows)
    assert len(data_files(results)) > 1


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("f.csv.gz", CsvFormat()),
        ("f.csv", CsvFormat(encoding="utf-16")),
        ("f.csv", CsvFormat(compression="gzip")),
        ("f.json", JsonFormat(strip_outer_array=True)),
    ],
)
def test_what_cannot_be_cut(world: World, name: str, format: Any) -> None:
    """Compressed and re-encoded files, and arrays, are one piece whatever their size."""
    file = world.put(name, b"\0" * (12 * MIB))
    (task,) = cut(world.plan([file], format=format, schema=pa.schema([("a", pa.int64())])), 2, SIZE)
    assert task.pieces[0].length is None
