"""A Python process of ours that answers its parent over a pipe of its own.

Standard output would be simpler, and belongs to whoever prints: what an interpreter runs when it
starts (``sitecustomize``, files in site-packages) may do so before the first line of ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import IO

_STDERR = 2
"""Of this process: there goes what the child prints."""


def start_child(
    module: str, environment: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Run a module, which reads its standard input; the process, and what it answers."""
    answers, theirs = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs)],
            stdin=subprocess.PIPE,
            stdout=_STDERR,
            pass_fds=(theirs,),
            env=environment,
        )
    except BaseException:
        os.close(answers)
        raise
    finally:
        os.close(theirs)
    return process, os.fdopen(answers, "rb")


def open_answers() -> IO[bytes]:
    """Where the module that was run writes what it answers."""
    return os.fdopen(int(sys.argv[1]), "wb")
