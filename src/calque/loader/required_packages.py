"""What loads need from outside, asked for before any module is read that imports it."""

from __future__ import annotations

from importlib.util import find_spec

from calque.errors import MissingExtra

TASKS = ("pyarrow", "xxhash")
"""What every process needs that reads and writes rows, executors of Spark among them."""
STATEMENTS = ("sqlglot",)
"""What a process needs besides that reads statements."""


def require_load_extra(packages: tuple[str, ...]) -> None:
    """MissingExtra, which names the extra, unless the packages are installed.

    They are looked for and not imported: a task must not pay for what it does not use.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra.of(
                "delta", f"loading files into tables ({package})", or_else="iceberg"
            )
