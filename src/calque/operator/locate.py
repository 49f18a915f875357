"""From what a user types to an operator and a path."""

from __future__ import annotations

from calque.operator.layers import Layer, default_layers
from calque.operator.operator import Operator


def locate(
    location: str, *, layers: tuple[Layer, ...] | None = None, **options: object
) -> tuple[Operator, str]:
    """The operator of a location's container and the path in it.

    ``s3://bucket/a/b`` gives the bucket and ``a/b``; ``./x``, ``x`` and ``file:///home/me/x`` give
    the whole file system and the absolute path, so that any two local files share an operator.
    The path is taken literally: ``?`` and ``%`` in it are nothing special. Requests pass through
    the default layers (retry, timeout) unless others are given.
    """
    chosen = default_layers() if layers is None else layers
    return Operator.locate(location, layers=chosen, **options)
