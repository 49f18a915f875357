"""What happens beside a load: an engine that lets the world change, a user with fewer rights."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import TaskResult
from calque.loader.model.plan import OnAdvance, Transformation, WritePlan
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.engines import choose_engine


def nothing() -> None:
    """No meddling."""


class Meddling:
    """The real engine, with something happening beside it."""

    name = "local"

    def __init__(
        self,
        *,
        before: Callable[[], None] = nothing,
        after: Callable[[], None] = nothing,
        before_inference: Callable[[], None] = nothing,
    ) -> None:
        self._inner = choose_engine(spark="local")
        self._before = before
        self._after = after
        self._before_inference = before_inference

    def run(self, plan: WritePlan, advance: OnAdvance | None = None) -> Iterator[TaskResult]:
        self._before()
        yield from self._inner.run(plan, advance)
        self._after()

    def infer(
        self,
        files: Sequence[StagedFile],
        format: FormatOptions,
        source_options: Mapping[str, object] | None = None,
        *,
        skip_bad: bool = False,
        transformation: Transformation | None = None,
    ) -> pa.Schema:
        self._before_inference()
        return self._inner.infer(
            files, format, source_options, skip_bad=skip_bad, transformation=transformation
        )

    def sample(self, plan: WritePlan, rows: int) -> pa.Table:
        return self._inner.sample(plan, rows)

    def close(self) -> None:
        self._inner.close()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read whatever it likes, so it does not stay root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
