"""The store as a file system of fsspec, as the libraries that take one use it."""

from __future__ import annotations

import gc
import pickle
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from calque.errors import ConditionNotMatch, InvalidInput, IsADirectory, IsSameFile, Unsupported
from calque.operator import Operator
from calque.store.filesystem import CalqueFileSystem
from calque.store.open_project import open_project
from tests.command import run_command

HIDDEN = "what was there"
PAGE = Path(__file__).parents[2] / "docs" / "fsspec.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in a folder, with two buckets."""
    made = tmp_path_factory.mktemp("store") / "data"
    with open_project(made) as project:
        project.create_bucket("photos")
        project.create_bucket("archive")
    return made


@pytest.fixture
def fs(folder: Path) -> Iterator[CalqueFileSystem]:
    """The file system, found by its protocol; its buckets are empty."""
    found = fsspec.filesystem("calque", project=str(folder), skip_instance_cache=True)
    assert isinstance(found, CalqueFileSystem)
    for bucket in found.ls("", detail=False):
        found.rm(bucket, recursive=True)
    yield found
    found.close()


def test_what_is_written_is_read(fs: CalqueFileSystem) -> None:
    """Whole, by ranges, from the end, line by line; and it is known by its size."""
    fs.pipe("calque://photos/2026/ä b?.txt", b"one\ntwo\nthree")
    name = "photos/2026/ä b?.txt"
    assert fs.cat(name) == b"one\ntwo\nthree"
    assert fs.cat_file(name, start=4, end=7) == b"two"
    assert fs.tail(name, 5) == b"three"
    assert fs.read_block(name, 4, 3) == b"two"
    with fs.open(name) as opened:
        opened.seek(-5, 2)
        assert opened.read() == b"three"
    with fs.open(name, "r") as lines:
        assert lines.read().splitlines() == ["one", "two", "three"]
    told = fs.info(name)
    assert (told["name"], told["size"], told["type"]) == (name, 13, "file")
    assert fs.modified(name) == told["mtime"]


def test_an_empty_file(fs: CalqueFileSystem) -> None:
    """Nothing can be written and read, too."""
    fs.touch("photos/empty")
    assert (fs.cat("photos/empty"), fs.size("photos/empty")) == (b"", 0)


def test_listings(fs: CalqueFileSystem) -> None:
    """Buckets, folders and objects by name; patterns; a walk; a file lists itself."""
    for key in ("a/1", "a/b/2", "z"):
        fs.pipe(f"photos/{key}", b"x")
    assert fs.ls("", detail=False) == ["archive", "photos"]
    assert fs.ls("calque://photos", detail=False) == ["photos/a", "photos/z"]
    assert [each["type"] for each in fs.ls("photos")] == ["directory", "file"]
    assert fs.ls("photos/a/", detail=False) == ["photos/a/1", "photos/a/b"]
    assert fs.ls("photos/z", detail=False) == ["photos/z"]
    assert fs.find("photos") == ["photos/a/1", "photos/a/b/2", "photos/z"]
    assert fs.glob("photos/*/1") == ["photos/a/1"]
    assert fs.isdir("photos/a")
    assert fs.ls("archive") == []


def test_what_is_not_there(fs: CalqueFileSystem) -> None:
    """FileNotFoundError, as fsspec and its users expect; a bucket as well as a key."""
    for verb in (fs.info, fs.ls, fs.rm):
        with pytest.raises(FileNotFoundError):
            verb("nowhere")
    for path in ("photos/nothing", "nowhere/x"):
        assert not fs.exists(path)
        for verb in (fs.info, fs.ls, fs.rm, fs.rm_file, fs.cat):
            with pytest.raises(FileNotFoundError):
                verb(path)
        with pytest.raises(FileNotFoundError):
            fs.cp_file(path, "archive/y")
    with pytest.raises(FileNotFoundError):
        fs.pipe("nowhere/x", b"1")


def test_exists_does_not_hide_an_error(tmp_path: Path) -> None:
    """A store that is not there is an error, and never "the file is not there"."""
    lost = CalqueFileSystem(project="grpc://", skip_instance_cache=True, access="nonsense")
    with pytest.raises(InvalidInput):
        lost.exists("photos/x")


def test_no_project(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """It says what to set; the environment will do, and so does a location of ours."""
    monkeypatch.delenv("CALQUE_PROJECT", raising=False)
    with pytest.raises(InvalidInput, match="CALQUE_PROJECT"):
        CalqueFileSystem(skip_instance_cache=True).ls("")
    with Operator.from_uri("calque://photos", project=str(folder)) as bucket:
        bucket.write("here", b"found")
        location = bucket.location("here")
    with fsspec.open(location) as opened:
        assert opened.read() == b"found"
    monkeypatch.setenv("CALQUE_PROJECT", str(folder))
    assert CalqueFileSystem(skip_instance_cache=True).cat("photos/here") == b"found"


@pytest.mark.parametrize("size", [10, 5000])
def test_a_write_that_fails_leaves_what_was_there(fs: CalqueFileSystem, size: int) -> None:
    """In one go or in parts: an exception, or a file that is never closed, changes nothing."""
    fs.pipe("photos/x", HIDDEN.encode())
    with suppress(ZeroDivisionError), fs.open("photos/x", "wb", block_size=1000) as opened:
        opened.write(b"h" * size)
        raise ZeroDivisionError
    left = fs.open("photos/x", "wb", block_size=1000)
    left.write(b"h" * size)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del left
        gc.collect()
    assert any("never closed" in str(each.message) for each in told)
    assert fs.cat("photos/x") == HIDDEN.encode()
    assert list(fs.project.list_pending("photos")) == []


def test_nothing_is_seen_before_the_end(fs: CalqueFileSystem) -> None:
    """A large file goes in parts and appears whole when it is closed."""
    data = bytes(range(256)) * 100
    with fs.open("photos/large", "wb", block_size=1000) as opened:
        for start in range(0, len(data), 700):
            opened.write(data[start : start + 700])
        assert not fs.exists("photos/large")
    assert fs.cat("photos/large") == data
    assert len(fs.project.list_parts("photos", "large")) > 10


def test_a_transaction_is_all_its_files(fs: CalqueFileSystem) -> None:
    """Files of a transaction appear at its end; one that fails leaves none."""
    with fs.transaction:
        fs.pipe("photos/t1", b"1")
        with fs.open("photos/t2", "wb", block_size=10) as opened:
            opened.write(b"2" * 100)
        assert not fs.exists("photos/t1")
    assert (fs.cat("photos/t1"), fs.size("photos/t2")) == (b"1", 100)
    with suppress(ZeroDivisionError), fs.transaction:
        fs.pipe("photos/t3", b"3")
        raise ZeroDivisionError
    assert not fs.exists("photos/t3")


def test_exclusive_writes(fs: CalqueFileSystem) -> None:
    """``xb`` never replaces: FileExistsError, in one go and in parts."""
    fs.pipe("photos/x", b"first")
    for size in (5, 500):
        with pytest.raises(FileExistsError), fs.open("photos/x", "xb", block_size=100) as opened:
            opened.write(b"h" * size)
    assert fs.cat("photos/x") == b"first"
    with fs.open("photos/new", "xb") as opened:
        opened.write(b"1")
    assert fs.cat("photos/new") == b"1"


def test_a_read_is_of_one_object(fs: CalqueFileSystem) -> None:
    """Replaced while it is read: an error, never bytes of two objects."""
    fs.pipe("photos/x", b"a" * 3000)
    with fs.open("photos/x", block_size=100, cache_type="none") as opened:
        assert opened.read(10) == b"a" * 10
        fs.pipe("photos/x", b"b" * 3000)
        with pytest.raises(ConditionNotMatch):
            opened.read(10)


def test_copies_and_moves_stay_inside(fs: CalqueFileSystem) -> None:
    """Of objects, across buckets, of folders; a move keeps the very object."""
    for key in ("a/1", "a/b/2"):
        fs.pipe(f"photos/{key}", key.encode())
    fs.cp("photos/a/1", "archive/one")
    assert fs.cat("archive/one") == b"a/1"
    etag = fs.ukey("photos/a/1")
    fs.mv("photos/a/1", "photos/moved")
    assert (fs.ukey("photos/moved"), fs.exists("photos/a/1")) == (etag, False)
    fs.cp("photos", "archive/all", recursive=True)
    assert fs.find("archive/all") == ["archive/all/a/b/2", "archive/all/moved"]
    fs.mv("archive/all", "photos/back", recursive=True)
    assert fs.find("photos/back") == ["photos/back/a/b/2", "photos/back/moved"]
    assert not fs.exists("archive/all")
    fs.mv("photos/moved", "photos/back/")
    assert fs.cat("photos/back/moved") == b"a/1"
    with pytest.raises(FileNotFoundError):
        fs.mv("photos/nothing", "photos/x")


def test_nothing_is_moved_into_itself(fs: CalqueFileSystem) -> None:
    """A folder into a folder of its own, there or not, or onto itself: refused, nothing is lost."""
    for key in ("a/1", "a/b/2"):
        fs.pipe(f"photos/{key}", b"x")
    for target in ("photos/a/b", "calque://photos/a/b/", "photos/a/new", "photos/a"):
        with pytest.raises(IsSameFile):
            fs.mv("photos/a", target, recursive=True)
    with pytest.raises(IsSameFile):
        fs.mv("photos/a/*", "photos/a/b/", recursive=True)
    with pytest.raises(IsSameFile):
        fs.mv("photos/a/1", "photos/a/1")
    assert fs.find("photos") == ["photos/a/1", "photos/a/b/2"]


def test_removing(fs: CalqueFileSystem) -> None:
    """A folder only when asked for, a bucket only when it is empty, and never all buckets."""
    for key in ("a/1", "a/b/2", "ab"):
        fs.pipe(f"photos/{key}", b"x")
    for path in ("photos/a", "photos"):
        with pytest.raises(IsADirectory):
            fs.rm(path)
    fs.rm("photos/a", recursive=True)
    assert fs.find("photos") == ["photos/ab"]
    with pytest.raises(InvalidInput):
        fs.rm("", recursive=True)
    fs.mkdir("new-bucket")
    fs.makedirs("new-bucket/x/y", exist_ok=True)
    with pytest.raises(FileExistsError):
        fs.mkdir("new-bucket")
    fs.makedirs("new-bucket", exist_ok=True)
    fs.rmdir("new-bucket")
    assert not fs.exists("new-bucket")


def test_what_cannot_be_done_is_said(fs: CalqueFileSystem) -> None:
    """Appending, and writing to a bucket."""
    with pytest.raises(Unsupported, match="written whole"):
        fs.open("photos/x", "ab")
    with pytest.raises(IsADirectory):
        fs.open("photos", "wb")


def test_it_goes_to_other_processes(fs: CalqueFileSystem) -> None:
    """Pickled, as Dask does it, it is opened anew where it arrives."""
    fs.pipe("photos/x", b"1")
    assert pickle.loads(pickle.dumps(fs)).cat("photos/x") == b"1"


def test_arrow_and_parquet(fs: CalqueFileSystem) -> None:
    """pyarrow writes a data set of folders and reads some columns of it."""
    table = pa.table({"day": ["mo", "mo", "tu"], "n": [1, 2, 3]})
    pa.dataset.write_dataset(
        table, "photos/set", filesystem=fs, format="parquet", partitioning=["day"]
    )
    read = pa.dataset.dataset("photos/set", filesystem=fs, partitioning=["day"])
    assert sorted(read.to_table(columns=["n"])["n"].to_pylist()) == [1, 2, 3]
    pq.write_table(table, "photos/t.parquet", filesystem=fs)
    assert pq.read_table("photos/t.parquet", columns=["n"], filesystem=fs).num_rows == 3


def test_pandas(fs: CalqueFileSystem, folder: Path) -> None:
    """It reads and writes addresses by itself."""
    pandas = pytest.importorskip("pandas")
    told = {"project": str(folder)}
    fs.makedirs("frames", exist_ok=True)
    frame = pandas.DataFrame({"day": ["mo", "tu"], "amount": [3, 4]})
    frame.to_csv("calque://frames/a.csv", index=False, storage_options=told)
    frame.to_parquet("calque://frames/a.parquet", storage_options=told)
    for found in (
        pandas.read_csv("calque://frames/a.csv", storage_options=told),
        pandas.read_parquet("calque://frames/a.parquet", storage_options=told),
    ):
        assert found.to_dict("list") == {"day": ["mo", "tu"], "amount": [3, 4]}


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask(fs: CalqueFileSystem, folder: Path, scheduler: str) -> None:
    """Its workers open the store for themselves, in threads and in processes."""
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    told = {"project": str(folder)}
    fs.makedirs("parts", exist_ok=True)
    for number in range(3):
        fs.pipe(f"parts/in/{number}.csv", f"amount\n{number}\n10\n".encode())
    with dask.config.set(scheduler=scheduler, num_workers=2):
        read = frames.read_csv("calque://parts/in/*.csv", storage_options=told)
        assert int(read.amount.sum().compute()) == 33
        read.to_parquet("calque://parts/out", storage_options=told)
        again = frames.read_parquet("calque://parts/out", storage_options=told)
        assert len(again) == 6
    fs.invalidate_cache()
    assert len(fs.glob("parts/out/*.parquet")) == 3


def test_polars(fs: CalqueFileSystem) -> None:
    """Polars writes and reads through an opened file."""
    frame = polars.DataFrame({"n": [1, 2, 3]})
    with fs.open("photos/p.parquet", "wb") as opened:
        frame.write_parquet(opened)
    with fs.open("photos/p.parquet") as opened:
        assert polars.read_parquet(opened).equals(frame)


def test_duckdb(fs: CalqueFileSystem) -> None:
    """DuckDB queries objects by their addresses, patterns included, and writes them."""
    fs.pipe({"photos/d/1.csv": b"n\n1\n2\n", "photos/d/2.csv": b"n\n3\n"})
    with duckdb.connect() as database:
        database.register_filesystem(fs)
        total = database.execute("SELECT sum(n) FROM read_csv('calque://photos/d/*.csv')")
        assert total.fetchall() == [(6,)]
        database.execute("COPY (SELECT 7 AS n) TO 'calque://photos/d.parquet' (FORMAT parquet)")
    assert pq.read_table("photos/d.parquet", filesystem=fs).to_pylist() == [{"n": 7}]


def test_the_page_is_right(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/fsspec.md runs, in a store of its own."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"```console\n\$ calque (.*?)\n```", text)
    assert run_command(*command.split(), cwd=tmp_path).returncode == 0
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    assert names["found"] == [(7,)]
    assert names["fs"].find("sales/kept") == ["sales/kept/a.csv", "sales/kept/a.parquet"]
    assert not names["fs"].exists("sales/copy")
    names["fs"].close()
