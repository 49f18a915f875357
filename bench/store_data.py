"""The store's bytes: what a copy saves, and what encryption and pieces cost.

python -m bench.store_data            1 GiB
python -m bench.store_data 0.25       a quarter of it
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pyeclib.ec_iface import ECDriver

from bench.table import Row, alternate, asked_scale, seconds, show
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.nodes.erasure import Redundancy
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.uplink.encryption.blocks import DEFAULT_BLOCK
from calque.store.uplink.session import UplinkSettings
from calque.values import GIB, MIB

BUCKET = "bench"
PLAIN_BLOCK = DEFAULT_BLOCK - 16
AT_ONCE = 4
ROUNDS = 3
PLAIN = "plain AES-256-GCM file"
REQUIRED, PIECES = 4, 6


class Bytes:
    """Random bytes without a disk: one MiB, over and over."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._chunk = os.urandom(MIB)

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self.size // MIB):
            yield self._chunk


def run(scale: float) -> list[Row]:
    """Every comparison on objects of ``scale`` GiB."""
    size = max(1, int(scale * GIB) // MIB) * MIB
    folder = Path(tempfile.mkdtemp(prefix="calque-bench-", dir=os.environ.get("BENCH_DIR")))
    try:
        with open_project(folder / "store") as project:
            project.create_bucket(BUCKET)
            return [
                *_against_plain(project, folder, size),
                *_against_coded(folder, size),
                *_copies(project, folder, size),
                _segment_sizes(folder, size),
                _copies_elsewhere(project),
            ]
    finally:
        shutil.rmtree(folder)


def _against_plain(project: Project, folder: Path, size: int) -> list[Row]:
    source, file, key = Bytes(size), folder / "plain", AESGCM(bytes(32))
    plain_write, write = [], []
    for _ in range(ROUNDS):  # always onto nothing: what an overwrite frees is not measured here
        file.unlink(missing_ok=True)
        project.delete_object(BUCKET, "big")
        plain_write.append(seconds(lambda: plain_encrypted_write(key, source, file)))
        write.append(seconds(lambda: project.upload(BUCKET, "big", source)))
    plain_read, read = alternate(
        ROUNDS,
        lambda: plain_encrypted_read(key, file),
        lambda: sum(map(len, project.download(BUCKET, "big"))),
    )
    return [
        _throughput("upload", size, median(write), median(plain_write), PLAIN),
        _throughput("download", size, read, plain_read, PLAIN),
    ]


def _throughput(what: str, size: int, ours: float, peer: float, against: str) -> Row:
    ratio = peer / ours
    return Row(
        f"{what}, {size // MIB} MiB",
        f"{size / MIB / ours:.0f} MiB/s",
        f"{against} {size / MIB / peer:.0f} MiB/s",
        ratio,
        "≥ 0.60",
        ratio >= 0.60,
    )


def plain_encrypted_write(key: AESGCM, source: Bytes, file: Path) -> None:
    """The least that an encrypted write can be: blocks of the same size into one file."""
    pending = b""
    with file.open("wb", buffering=0) as out:
        number, blocks = 0, list[bytes]()
        for chunk in source:
            pending += chunk
            start = 0
            while len(pending) - start >= PLAIN_BLOCK:
                block = pending[start : start + PLAIN_BLOCK]
                blocks.append(key.encrypt(number.to_bytes(12, "big"), block, None))
                number, start = number + 1, start + PLAIN_BLOCK
            pending = pending[start:]
            out.write(b"".join(blocks))
            blocks.clear()
        out.write(key.encrypt(number.to_bytes(12, "big"), pending, None))
        os.fsync(out.fileno())


def plain_encrypted_read(key: AESGCM, file: Path) -> None:
    """The least that a decrypting read can be."""
    number = 0
    with file.open("rb", buffering=0) as source:
        while chunk := source.read(DEFAULT_BLOCK * AT_ONCE):
            for start in range(0, len(chunk), DEFAULT_BLOCK):
                block = chunk[start : start + DEFAULT_BLOCK]
                key.decrypt(number.to_bytes(12, "big"), block, None)
                number += 1


def _against_coded(folder: Path, size: int) -> list[Row]:
    """Four of six pieces on six folders, against cipher, code and disk alone."""
    roots = [str(folder / f"disk{number}") for number in range(PIECES)]
    options = StoreOptions(redundancy=Redundancy.of(REQUIRED, PIECES), nodes=roots)
    EmbeddedStore.create(folder / "coded", options).close()
    source, key = Bytes(size), AESGCM(bytes(32))
    code = ECDriver(k=REQUIRED, m=PIECES - REQUIRED, ec_type="isa_l_rs_cauchy")
    files = [folder / f"piece{number}" for number in range(PIECES)]
    bare_write, write = [], []
    with open_project(folder / "coded") as project:
        project.create_bucket(BUCKET)
        for _ in range(ROUNDS):
            for file in files:
                file.unlink(missing_ok=True)
            project.delete_object(BUCKET, "big")
            os.sync()
            bare_write.append(seconds(lambda: coded_write(key, code, source, files)))
            os.sync()
            write.append(seconds(lambda: project.upload(BUCKET, "big", source)))
        bare_read, read = alternate(
            ROUNDS,
            lambda: coded_read(key, code, files),
            lambda: sum(map(len, project.download(BUCKET, "big"))),
        )
    what, against = f"{REQUIRED} of {PIECES} pieces", "cipher, code and disk alone"
    return [
        _throughput(f"upload in {what}", size, median(write), median(bare_write), against),
        _throughput(f"download of {what}", size, read, bare_read, against),
    ]


def coded_write(key: AESGCM, code: ECDriver, source: Bytes, files: list[Path]) -> None:
    """The least that an upload in pieces can be: each MiB encrypted, coded, and written."""
    opened = [file.open("wb", buffering=0) for file in files]
    for number, chunk in enumerate(source):
        shares = code.encode(key.encrypt(number.to_bytes(12, "big"), chunk, None))
        for out, share in zip(opened, shares, strict=True):
            out.write(share)
    for out in opened:
        os.fsync(out.fileno())
        out.close()


def coded_read(key: AESGCM, code: ECDriver, files: list[Path]) -> None:
    """The least that a download of pieces can be: as many as are required, decoded, decrypted."""
    share = code.get_segment_info(MIB + 16, MIB + 16)["fragment_size"]
    opened = [file.open("rb", buffering=0) for file in files[:REQUIRED]]
    for number in itertools.count():
        shares = [each.read(share) for each in opened]
        if not shares[0]:
            break
        key.decrypt(number.to_bytes(12, "big"), code.decode(shares), None)
    for each in opened:
        each.close()


def _copies(project: Project, folder: Path, size: int) -> list[Row]:
    copy, again, cp = alternate(
        ROUNDS,
        lambda: project.copy_object(BUCKET, "big", BUCKET, "copy"),
        lambda: project.upload(BUCKET, "again", project.download(BUCKET, "big")),
        lambda: _cp(folder / "plain", folder / "cp"),
    )
    (folder / "cp").unlink()
    project.delete_object(BUCKET, "again")
    return [
        _faster(f"copy of {size // MIB} MiB", copy, "download and upload again", again, 50),
        _faster(f"copy of {size // MIB} MiB", copy, "cp --reflink=never and sync", cp, 10),
    ]


def _cp(source: Path, target: Path) -> None:
    subprocess.run(["cp", "--reflink=never", str(source), str(target)], check=True)
    descriptor = os.open(target, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _faster(what: str, ours: float, peer: str, theirs: float, wanted: int) -> Row:
    ratio = theirs / ours
    figure = f"{peer} {theirs * 1000:.0f} ms"
    return Row(what, f"{ours * 1000:.1f} ms", figure, ratio, f"≥ {wanted}", ratio >= wanted)


def _segment_sizes(folder: Path, size: int) -> Row:
    """Equal counts of segments, small and large: a copy must take the same time."""
    count = max(2, size // (64 * MIB))
    small = UplinkSettings(segment_size=MIB)
    with open_project(folder / "sizes") as large_project:
        large_project.create_bucket(BUCKET)
        large_project.upload(BUCKET, "large", Bytes(count * 64 * MIB))
    with open_project(folder / "sizes", settings=small) as project:
        project.upload(BUCKET, "small", Bytes(count * MIB))
        many = 40

        def copies(key: str) -> None:
            for number in range(many):
                project.copy_object(BUCKET, key, BUCKET, f"copy-of-{key}-{number}")

        of_small, of_large = alternate(5, lambda: copies("small"), lambda: copies("large"))
    ratio = of_large / of_small
    return Row(
        f"copy of {count} segments of 64 MiB",
        f"{of_large / many * 1000:.2f} ms",
        f"of 1 MiB {of_small / many * 1000:.2f} ms",
        ratio,
        "≤ 1.20",
        ratio <= 1.20,
    )


def _copies_elsewhere(project: Project) -> Row:
    """Reading an original asks for nothing more when copies of it exist."""
    content = os.urandom(MIB)
    for name in ("alone", "copied"):
        project.upload(BUCKET, name, content)
    for number in range(100):
        project.copy_object(BUCKET, "copied", BUCKET, f"copies/{number}")

    def read(name: str) -> None:
        for _ in range(50):
            project.download(BUCKET, name).read()

    alone, copied = alternate(7, lambda: read("alone"), lambda: read("copied"))
    ratio = copied / alone
    return Row(
        "download of a 1 MiB original with 100 copies",
        f"{copied / 50 * 1000:.2f} ms",
        f"without copies {alone / 50 * 1000:.2f} ms",
        ratio,
        "≤ 1.10",
        ratio <= 1.10,
    )


def main() -> None:
    """Print the table."""
    rows: list[Row] = []
    taken = seconds(lambda: rows.extend(run(asked_scale())))
    show("Store: bytes", rows)
    print(f"\n{taken:.0f} s")


if __name__ == "__main__":
    main()
