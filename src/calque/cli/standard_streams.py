"""``-`` in a copy: what is piped in becomes an object, an object's bytes are piped out."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from calque.cli.locations import Location
from calque.errors import IntegrityError, InvalidInput, IsADirectory, Unsupported
from calque.values import ByteRange, Metadata

if TYPE_CHECKING:
    from calque.cli.copy_job import CopyReport
    from calque.operator.options import CopyKeywords

STANDARD = "-"
_OF_COPIES = ("chunk", "carry_class")
"""Options that say something of a source or of parts; a pipe has neither."""


def refuse_unfit(source: str, target: str, options: CopyKeywords, *, resume: bool) -> None:
    """Say which options mean nothing for a pipe."""
    if source == target == STANDARD:
        raise InvalidInput("standard input to standard output is no copy", hint="That is `cat`.")
    if resume:
        raise Unsupported("a copy from or to a pipe cannot be resumed: its bytes are gone")
    given = [name for name in _OF_COPIES if options.get(name)]
    given += ["source_version"] if source == STANDARD and options.get("source_version") else []
    if target == STANDARD:
        given += [name for name in ("if_not_exists", "if_match") if options.get(name)]
    if given:
        shown = given[0].replace("_", "-")
        raise InvalidInput(f"--{shown} means nothing where {STANDARD} stands for a pipe")


def store_standard_input(target: Location, options: CopyKeywords) -> CopyReport:
    """Write what comes in as one object; cut off by an error or a signal it leaves nothing."""
    from calque.cli.copy_job import stop_on_signals

    if not target.path or target.path.endswith("/") or target.is_local_directory:
        raise IsADirectory(
            f"{target.uri} is a directory, and standard input has no name to keep",
            hint="Name the object: calque cp - s3://bucket/key.",
        )
    begun = time.monotonic()
    # Killed midway it must not commit what happened to have come so far.
    with stop_on_signals():
        made = target.operator.write(
            target.path,
            sys.stdin.buffer,
            if_not_exists=options.get("if_not_exists", False),
            if_match=options.get("if_match"),
            concurrent=options.get("concurrent", 4),
        )
    return _report(STANDARD, target.uri, made, Metadata(path=STANDARD), begun)


def show_on_standard_output(source: Location, options: CopyKeywords) -> CopyReport:
    """Write an object's bytes as they arrive, all of one version."""
    from calque.operator.read import pinned_options, read_on

    begun = time.monotonic()
    found = source.operator.stat(source.path, version=options.get("source_version"))
    service = source.operator.service
    # The whole is asked for: services tell their checksums of no less.
    reading = replace(
        pinned_options(service, found, ByteRange()),
        checksums=(found.checksum,) if found.checksum else (),
        verify=options.get("verify") == "checksum",
    )
    shown = 0
    for chunk in read_on(service, found.path, reading) if found.size else ():
        sys.stdout.buffer.write(chunk)
        shown += len(chunk)
    sys.stdout.buffer.flush()
    if shown != found.size:
        raise IntegrityError(f"{source.uri} gave {shown} of its {found.size} bytes")
    return _report(source.uri, STANDARD, found, found, begun)


def _report(source: str, target: str, made: Metadata, found: Metadata, begun: float) -> CopyReport:
    from calque.cli.copy_job import CopyReport

    return CopyReport(
        source=source,
        target=target,
        bytes=made.size,
        seconds=time.monotonic() - begun,
        route="through the client",
        resumed_from=0,
        metadata=made,
        source_metadata=found,
    )
