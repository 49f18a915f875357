"""The bytes of a file, a piece at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator

from calque.errors import ConditionNotMatch, Unsupported
from calque.operator.options import ReadOptions
from calque.operator.services.fs.errors import map_errors, map_lookup_errors
from calque.operator.services.fs.marker import refuse_reserved
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import check_regular, token
from calque.values import MIB

PIECE = MIB


def open_source(root: Root, path: str) -> int:
    """A regular file opened for reading. O_NONBLOCK: a pipe must not make us wait for a writer."""
    key = root.key(path)
    refuse_reserved(key)
    shown = root.absolute(key)
    with map_lookup_errors(shown):
        descriptor = root.open(key, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            check_regular(os.fstat(descriptor), shown)
        except BaseException:
            os.close(descriptor)
            raise
    return descriptor


def read(root: Root, path: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range, cut like a slice where the file ends before it.

    The file is opened, and its pin checked, before this returns.
    With ``if_match`` a change while reading raises ConditionNotMatch, at the latest at the end.
    """
    if options.version is not None:
        raise Unsupported(f"{path!r}: a file system keeps no versions")
    descriptor, shown = open_source(root, path), root.absolute(root.key(path))
    try:
        _check_pin(os.fstat(descriptor), shown, options.if_match)
    except BaseException:
        os.close(descriptor)
        raise
    return _pieces(descriptor, shown, options)


def _pieces(descriptor: int, shown: str, options: ReadOptions) -> Iterator[bytes]:
    offset, left = options.range.offset, options.range.length
    try:
        with map_errors(shown):
            while left is None or left > 0:
                piece = os.pread(descriptor, PIECE if left is None else min(PIECE, left), offset)
                _check_pin(os.fstat(descriptor), shown, options.if_match)
                if not piece:
                    return
                yield piece
                offset += len(piece)
                left = None if left is None else left - len(piece)
    finally:
        os.close(descriptor)


def _check_pin(found: os.stat_result, shown: str, wanted: str | None) -> None:
    if wanted is not None and token(found) != wanted:
        raise ConditionNotMatch(f"{shown!r} has changed since it was looked at")
