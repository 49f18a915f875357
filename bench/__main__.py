"""``make bench``: every benchmark in turn, each in a process of its own.

make bench                       all of them
make bench ARGS="s3_copy"        some of them
make bench ARGS="--scale 0.01"   all of them, far smaller: that they run, not how fast
make bench ARGS="--keep"         also write the tables to docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Every figure is a ratio of one run on one machine: absolute times of shared machines mean little.
Run them with `make bench`, some by name (`make bench ARGS="trees gateway"`); `--scale 0.01` makes
each smaller (that it runs, not how fast), `--keep` writes this page. `BENCH_DIR` names a disk.
"""


def main() -> int:
    """Run the benchmarks that were named, or all."""
    known = sorted(
        path.stem for path in HERE.glob("*.py") if path.stem not in ("__main__", "table")
    )
    known = [name for name in known if not name.startswith("_")]
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *known], metavar="NAME", default=[])
    parser.add_argument("--keep", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--scale", type=float, default=1.0, help="of a full run: 0.1 is a tenth")
    asked = parser.parse_args()
    if asked.keep and asked.scale != 1:
        parser.error("--keep is for full runs: figures of smaller ones mean little")
    tables, failed = [], []
    for name in asked.names or known:
        done = subprocess.run(
            [sys.executable, "-m", f"bench.{name}", str(asked.scale)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parent,
        )
        print(done.stdout, flush=True)
        tables.append(done.stdout)
        if done.returncode:
            failed.append(name)
    if asked.keep:
        machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
        PAGE.write_text(f"{HEAD}\nLast run {date.today()}: {machine}.\n" + "".join(tables))
    for name in failed:
        print(f"bench {name} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
