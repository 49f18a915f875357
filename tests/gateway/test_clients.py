"""Other people's clients, unchanged, against the gateway."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import fs

from calque.values import MIB
from tests.gateway.world import REGION, World

SMALL, LARGE = b"small bytes", os.urandom(11 * MIB)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Some files, one of them in several parts for every client."""
    folder = tmp_path / "tree"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "a b+ü.txt").write_bytes(SMALL)
    (folder / "empty").write_bytes(b"")
    (folder / "deep" / "er" / "large").write_bytes(LARGE)
    return folder


def contents(folder: Path) -> dict[str, str]:
    """Every file by its name, with the MD5 of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.md5(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def tool(name: str) -> str:
    beside = Path(sysconfig.get_path("scripts")) / name
    found = str(beside) if beside.exists() else shutil.which(name)
    return found or pytest.skip(f"{name} is not installed")


def run(world: World, *command: str, **environment: str) -> str:
    """Run a tool of another process; its output, or a failure that shows it."""
    done = subprocess.run(
        command,
        env={**os.environ, **world.environment, **environment},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def rclone(world: World) -> Any:
    """rclone with the gateway as its remote ``g``."""
    settings = {
        "RCLONE_CONFIG_G_TYPE": "s3",
        "RCLONE_CONFIG_G_PROVIDER": "Other",
        "RCLONE_CONFIG_G_ACCESS_KEY_ID": world.key.access_key_id,
        "RCLONE_CONFIG_G_SECRET_ACCESS_KEY": world.key.secret_access_key,
        "RCLONE_CONFIG_G_ENDPOINT": world.url,
        "RCLONE_CONFIG_G_REGION": REGION,
        "RCLONE_CONFIG": "/dev/null",
    }
    binary = tool("rclone")
    return lambda *words: run(
        world, binary, *words, "--retries", "1", "--s3-upload-cutoff", "6M", **settings
    )


def test_rclone(rclone: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    """copy, check, sync, touch, move and purge; hashes and times are kept."""
    rclone("copy", str(tree), f"g:{bucket}/in")
    rclone("check", str(tree), f"g:{bucket}/in")
    rclone("copy", f"g:{bucket}/in", str(tmp_path / "back"))
    assert contents(tmp_path / "back") == contents(tree)
    stamp = (tree / "empty").stat().st_mtime_ns // 1_000_000
    assert (tmp_path / "back" / "empty").stat().st_mtime_ns // 1_000_000 == stamp
    (tree / "empty").unlink()
    rclone("sync", str(tree), f"g:{bucket}/in")
    assert "empty" not in rclone("lsf", f"g:{bucket}/in")
    rclone("touch", f"g:{bucket}/in/a b+ü.txt", "-t", "2020-01-02T03:04:05")
    assert "2020-01-02" in rclone("lsl", f"g:{bucket}/in/a b+ü.txt")
    rclone("copy", f"g:{bucket}/in", f"g:{bucket}/copied")
    rclone("check", f"g:{bucket}/in", f"g:{bucket}/copied")
    in_parts = ("--s3-copy-cutoff", "6M", "--s3-chunk-size", "5M")
    rclone("copyto", f"g:{bucket}/in/deep/er/large", f"g:{bucket}/in-parts", *in_parts)
    assert f"{len(LARGE)} in-parts" in " ".join(rclone("ls", f"g:{bucket}").split())
    rclone("move", f"g:{bucket}/copied", f"g:{bucket}/moved")
    rclone("check", f"g:{bucket}/in", f"g:{bucket}/moved")
    rclone("purge", f"g:{bucket}")


def test_s5cmd(world: World, bucket: str, tree: Path, tmp_path: Path) -> None:
    """cp both ways, within the store, ls, mv and rm."""
    s5cmd = tool("s5cmd")

    def ask(*words: str) -> str:
        return run(world, s5cmd, "--endpoint-url", world.url, *words, S3_ENDPOINT_URL=world.url)

    ask("cp", "--part-size", "5", f"{tree}/", f"s3://{bucket}/in/")
    assert "deep/er/large" in ask("ls", f"s3://{bucket}/in/*")
    ask("cp", f"s3://{bucket}/in/deep/er/large", f"s3://{bucket}/copy")
    ask("mv", f"s3://{bucket}/copy", f"s3://{bucket}/moved")
    ask("cp", f"s3://{bucket}/moved", str(tmp_path / "moved"))
    assert (tmp_path / "moved").read_bytes() == LARGE
    ask("cp", f"s3://{bucket}/in/*", f"{tmp_path}/back/")
    assert contents(tmp_path / "back") == contents(tree)
    ask("rm", f"s3://{bucket}/*")
    assert ask("ls", f"s3://{bucket}") == ""


def test_pyarrow(world: World, bucket: str) -> None:
    """Arrow's own file system: write, read, list, copy, move and delete."""
    files = fs.S3FileSystem(
        access_key=world.key.access_key_id,
        secret_key=world.key.secret_access_key,
        endpoint_override=world.url.partition("://")[2],
        scheme="http",
        region=REGION,
    )
    for name, data in (("dir/small", SMALL), ("dir/large", LARGE)):
        with files.open_output_stream(f"{bucket}/{name}") as out:
            out.write(data)
        with files.open_input_file(f"{bucket}/{name}") as source:
            assert source.read() == data
            assert source.read_at(5, 3) == data[3:8]
    files.copy_file(f"{bucket}/dir/large", f"{bucket}/dir/copy")
    files.move(f"{bucket}/dir/copy", f"{bucket}/dir/moved")
    found = files.get_file_info(fs.FileSelector(f"{bucket}/dir", recursive=True))
    assert sorted((each.base_name, each.size) for each in found) == [
        ("large", len(LARGE)),
        ("moved", len(LARGE)),
        ("small", len(SMALL)),
    ]
    files.delete_dir(f"{bucket}/dir")
    assert files.get_file_info(f"{bucket}/dir/large").type == fs.FileType.NotFound


def lake_options(world: World) -> dict[str, str]:
    return {
        **{name: value for name, value in world.environment.items() if name.startswith("AWS_")},
        "AWS_ALLOW_HTTP": "true",
        "aws_conditional_put": "etag",
    }


def test_two_writers_of_a_delta_table(world: World, bucket: str) -> None:
    """No commit is lost and the log does not fork: each of two writers' rows are there."""
    uri, options = f"s3://{bucket}/table", lake_options(world)
    rounds = 4

    def write(writer: int) -> None:
        for number in range(rounds):
            rows = pa.table({"writer": [writer], "number": [number]})
            write_deltalake(uri, rows, mode="append", storage_options=options)

    write_deltalake(uri, pa.table({"writer": [9], "number": [9]}), storage_options=options)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    table = DeltaTable(uri, storage_options=options)
    found = table.to_pyarrow_table().to_pylist()
    expected = [(w, n) for w in range(2) for n in range(rounds)] + [(9, 9)]
    assert sorted((row["writer"], row["number"]) for row in found) == sorted(expected)
    assert table.version() == 2 * rounds


def test_obstore(world: World, bucket: str) -> None:
    """put, get, ranges, conditional put, list, copy, rename, delete."""
    obstore = pytest.importorskip("obstore")
    store = obstore.store.S3Store(
        bucket,
        endpoint=world.url,
        access_key_id=world.key.access_key_id,
        secret_access_key=world.key.secret_access_key,
        region=REGION,
        client_options={"allow_http": True},
    )
    obstore.put(store, "large", LARGE)
    assert bytes(obstore.get(store, "large").bytes()) == LARGE
    assert bytes(obstore.get_range(store, "large", start=7, length=9)) == LARGE[7:16]
    obstore.put(store, "once", b"1", mode="create")
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store, "once", b"2", mode="create")
    obstore.copy(store, "once", "copy")
    obstore.rename(store, "copy", "moved")
    names = sorted(each["path"] for page in obstore.list(store) for each in page)
    assert names == ["large", "moved", "once"]
    obstore.delete(store, names)
    assert [page for page in obstore.list(store) if page] == []


CLIENTS = ["awscli", "s3fs"]


@pytest.fixture(scope="module")
def other_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment for clients that pin another botocore than boto3's newest."""
    folder = tmp_path_factory.mktemp("clients") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    done = subprocess.run(
        [str(folder / "bin" / "pip"), "install", "-q", *CLIENTS], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip("the clients cannot be installed here")
    return folder / "bin"


@pytest.mark.soak
def test_awscli(
    world: World, bucket: str, tree: Path, tmp_path: Path, other_environment: Path
) -> None:
    """aws s3 cp, sync, mv, rm, ls, and a presigned link."""

    def aws(*words: str) -> str:
        return run(world, str(other_environment / "aws"), "s3", *words)

    aws("cp", "--recursive", str(tree), f"s3://{bucket}/in")
    aws("sync", f"s3://{bucket}/in", str(tmp_path / "back"))
    assert contents(tmp_path / "back") == contents(tree)
    aws("cp", f"s3://{bucket}/in/deep/er/large", f"s3://{bucket}/copy")
    aws("mv", f"s3://{bucket}/copy", f"s3://{bucket}/moved")
    assert str(len(LARGE)) in aws("ls", f"s3://{bucket}/moved")
    assert bucket in aws("presign", f"s3://{bucket}/moved")
    aws("rm", "--recursive", f"s3://{bucket}/")
    assert aws("ls", f"s3://{bucket}/") == ""


S3FS = """
import sys, s3fs
bucket, url = sys.argv[1:]
files = s3fs.S3FileSystem(endpoint_url=url)
large = b"x" * (11 << 20)
files.pipe(f"{bucket}/d/small", b"small")
files.pipe(f"{bucket}/d/large", large)
with files.open(f"{bucket}/d/large", "rb") as source:
    source.seek(5); assert source.read(3) == b"xxx"
assert files.cat(f"{bucket}/d/large") == large
files.copy(f"{bucket}/d/large", f"{bucket}/d/copy")
files.mv(f"{bucket}/d/copy", f"{bucket}/d/moved")
assert sorted(files.ls(f"{bucket}/d")) == [f"{bucket}/d/{n}" for n in ("large", "moved", "small")]
assert files.info(f"{bucket}/d/large")["size"] == len(large)
files.rm(f"{bucket}/d", recursive=True)
assert not files.exists(f"{bucket}/d/large")
"""


@pytest.mark.soak
def test_s3fs(world: World, bucket: str, other_environment: Path) -> None:
    """fsspec's S3: pipe, open, copy, move, list and delete."""
    run(world, str(other_environment / "python"), "-c", S3FS, bucket, world.url)
