"""Processes that start at once: forked from a server that has imported what they need.

Importing takes a second of a processor, a fork none. The server has one thread and has run nothing,
so a fork of it is as good as a new interpreter.
"""

from __future__ import annotations

import multiprocessing

from calque.cli.main import COMMANDS, module_of

FORKS = multiprocessing.get_context("forkserver")
# One list for all: whoever forks first starts the server, and it imports once.
FORKS.set_forkserver_preload(
    [
        "tests.command",
        "tests.program",
        "tests.loader.loader",
        "tests.loader.world",
        *(module_of(name) for name in COMMANDS),
        # What commands import only when they run.
        "calque.loader.api",
        "calque.loader.commit.tables.delta",
        "calque.loader.commit.tables.iceberg",
        "calque.loader.run.formats.csv.infer",
        "calque.operator",
        "calque.operator.services.fs.builder",
        "calque.operator.services.s3.builder",
        "calque.store.open_project",
        "calque.store.upkeep.timers",
        "calque.transfer.api",
        "pyiceberg.io.pyarrow",
    ]
)
