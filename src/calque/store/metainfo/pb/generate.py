"""Regenerate the message classes: ``python -m calque.store.metainfo.pb.generate``.

The generated files are committed; a test checks that they are what this gives.
"""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

PACKAGE = Path(__file__).parent
SOURCE_ROOT = PACKAGE.parents[3]


def generate(target: Path) -> None:
    """Write the classes of every ``.proto`` file below ``target`` (needs grpcio-tools)."""
    from grpc_tools import protoc

    well_known = resources.files("grpc_tools") / "_proto"
    status = protoc.main(
        [
            "protoc",
            f"-I{SOURCE_ROOT}",
            f"-I{well_known}",
            f"--python_out={target}",
            f"--pyi_out={target}",
            *(str(path) for path in sorted(PACKAGE.glob("*.proto"))),
        ]
    )
    if status:
        raise SystemExit(f"protoc failed with status {status}")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE_ROOT)
