"""Trees from Python: each function makes a request, runs it here, and returns its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Unpack

from calque.config import load_settings
from calque.errors import Unsupported
from calque.late_module import LateModule
from calque.operator.layers.chain import Layer
from calque.operator.service import HasService
from calque.transfer.jobs.open_job import configured_ledger, find_left_of
from calque.transfer.model import KeyRange, Row
from calque.transfer.plan.collisions import Collisions
from calque.transfer.plan.overlap import refuse_overlaps, refuse_report_inside
from calque.transfer.plan.pairing import pair_up
from calque.transfer.plan.places import open_target
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.rules import refuse_incomparable
from calque.transfer.plan.shared_paths import refuse_shared_paths
from calque.transfer.plan.side import Side
from calque.transfer.prepared import Prepared
from calque.transfer.prepared_removal import PreparedRemoval, removal_of
from calque.transfer.report.report import Report
from calque.transfer.report.shown_progress import OnTreeProgress, shown_progress
from calque.transfer.request.keywords import TreeKeywords, options_from
from calque.transfer.request.options import Kind, TreeOptions
from calque.transfer.request.tree_request import Given, TreeRequest
from calque.transfer.run.removals.deletes import remove_root
from calque.transfer.run.run import Confirm, Run
from calque.transfer.run.verification import Verification

if TYPE_CHECKING:
    import asyncio

    from calque.ledger import Ledger
    from calque.transfer.run.cluster import Cluster
else:
    asyncio = LateModule("asyncio")  # for the functions that are awaited, which few call

NONE: Mapping[str, object] = MappingProxyType({})


class PreparedRun(Prepared):
    """A request whose trees are opened and seen to lie apart; nothing is written yet."""

    def __init__(
        self,
        request: TreeRequest,
        *,
        on_event: Callable[[Row], None] | None = None,
        confirm: Confirm | None = None,
        ledger: Callable[[], Ledger] = configured_ledger,
        left_job: str | None = None,
    ) -> None:
        """``left_job``: the job that is gone on with, and no other."""
        super().__init__(request)
        options, layers = request.options, self._layers
        target = open_target(request.target, request.target_options, layers)
        backup = _open_backup(request, layers)
        left = find_left_of(request, ledger)
        trees = pair_up(request, target, layers, backup, **left)
        for each in trees:
            if options.compare == "checksum" and not options.download:
                refuse_incomparable(each.source, each.target)
        removes, clears = options.delete or request.kind == "mv", options.delete_excluded
        refuse_overlaps(trees, removes=removes, clears=clears)
        refuse_report_inside(trees, request.report, removes=removes)
        refuse_shared_paths(trees, removes=removes, clears=clears)
        cluster = _cluster_of(options, trees)
        if cluster is not None:
            cluster.prepare(request, trees)
        opened = self._open_job(trees, target.location(), ledger, left_job)
        verification = self._verification(options)
        self._run = Run(
            trees,
            options,
            self._collect(on_event, None if verification is None else verification.note),
            limit=self._limit,
            moves=request.kind == "mv",
            confirm=confirm,
            journal=opened.journal,
            known=opened.known,
            cluster=cluster,
            verification=verification,
        )
        self.progress = self._run.progress

    def _verification(self, options: TreeOptions) -> Verification | None:
        if not options.verify or options.dry_run:
            return None
        verification, writer = Verification(self.trees), self._opened.writer
        if writer is not None and self._opened.journal and self._opened.journal.resumed:
            for row in writer.rows():  # of the process before this one
                verification.note(row)
        return verification

    def stop(self) -> None:
        self._run.stop()

    def _act(self) -> None:
        report = self._run.execute()
        if report.kind == "mv" and report.ok and not report.dry_run:
            self._remove_moved()

    def _left(self) -> Sequence[tuple[int, KeyRange]]:
        return self._run.list_left()

    def _remove_moved(self) -> None:
        """Folders that were moved with their names go too, if nothing is left in them."""
        for each in self.trees:
            if each.named:
                remove_root(each.source)

    def describe(self) -> list[str]:
        """What becomes what, a line a source."""
        return [f"{each.shown} → {each.target.location(each.single)}" for each in self.trees]


def copy_tree(
    source: Given | Sequence[Given],
    target: Given,
    *,
    on_event: Callable[[Row], None] | None = None,
    progress: OnTreeProgress | bool | None = None,
    source_options: Mapping[str, object] = NONE,
    target_options: Mapping[str, object] = NONE,
    **keywords: Unpack[TreeKeywords],
) -> Report:
    """Copy everything below a folder to another, between any two services; nothing is deleted.

    What is there already and equal is not copied. Each object appears whole or not at all; one
    that fails does not keep the others back. The report tells what became of each.

    ``on_event`` gets every row. ``progress`` is a function that is told how far the run is, several
    times a second and on a thread of its own; True shows a line on the terminal, False shows
    nothing; a notebook shows a line unasked.
    """
    request = _request("cp", source, target, source_options, target_options, keywords)
    return _run(request, on_event, progress)


def sync_tree(
    source: Given | Sequence[Given],
    target: Given,
    *,
    on_event: Callable[[Row], None] | None = None,
    progress: OnTreeProgress | bool | None = None,
    source_options: Mapping[str, object] = NONE,
    target_options: Mapping[str, object] = NONE,
    **keywords: Unpack[TreeKeywords],
) -> Report:
    """As :func:`copy_tree`; with ``delete=True`` what the source lacks is deleted, last of all.

    Nothing is deleted after an error, for a source without anything in it, or beyond
    ``max_delete``.
    """
    request = _request("sync", source, target, source_options, target_options, keywords)
    return _run(request, on_event, progress)


def move_tree(
    source: Given | Sequence[Given],
    target: Given,
    *,
    on_event: Callable[[Row], None] | None = None,
    progress: OnTreeProgress | bool | None = None,
    source_options: Mapping[str, object] = NONE,
    target_options: Mapping[str, object] = NONE,
    **keywords: Unpack[TreeKeywords],
) -> Report:
    """As :func:`copy_tree`; each source is deleted once its copy is there, if it is unchanged."""
    request = _request("mv", source, target, source_options, target_options, keywords)
    return _run(request, on_event, progress)


def remove_tree(
    location: Given | Sequence[Given],
    *,
    on_event: Callable[[Row], None] | None = None,
    progress: OnTreeProgress | bool | None = None,
    options: Mapping[str, object] = NONE,
    confirm: Confirm | None = None,
    **keywords: Unpack[TreeKeywords],
) -> Report:
    """Delete what lies below folders, as far as filters take it; a whole bucket is refused.

    Not atomic: after an error some are gone. An object that was rewritten since it was listed
    stays. ``on_event`` and ``progress`` are as of :func:`copy_tree`.
    """
    request = removal_of(_several(location), options_from("rm", keywords), options=options)
    prepared = PreparedRemoval(request, on_event=on_event, confirm=confirm)
    with shown_progress(prepared.progress, progress):
        return prepared.run()


async def copy_tree_async(
    source: Given | Sequence[Given],
    target: Given,
    *,
    on_event: Callable[[Row], None] | None = None,
    progress: OnTreeProgress | bool | None = None,
    source_options: Mapping[str, object] = NONE,
    target_options: Mapping[str, object] = NONE,
    **keywords: Unpack[TreeKeywords],
) -> Report:
    """:func:`copy_tree`, awaited. A cancelled task stops the run and waits for what is in flight.

    ``on_event`` is called on threads of the run.
    """
    request = _request("cp", source, target, source_options, target_options, keywords)
    return await _await_run(request, on_event, progress)


async def sync_tree_async(
    source: Given | Sequence[Given],
    target: Given,
    *,
    on_event: Callable[[Row], None] | None = None,
    progress: OnTreeProgress | bool | None = None,
    source_options: Mapping[str, object] = NONE,
    target_options: Mapping[str, object] = NONE,
    **keywords: Unpack[TreeKeywords],
) -> Report:
    """:func:`sync_tree`, awaited; see :func:`copy_tree_async`."""
    request = _request("sync", source, target, source_options, target_options, keywords)
    return await _await_run(request, on_event, progress)


def _run(
    request: TreeRequest,
    on_event: Callable[[Row], None] | None,
    progress: OnTreeProgress | bool | None,
) -> Report:
    prepared = PreparedRun(request, on_event=on_event)
    with shown_progress(prepared.progress, progress):
        return prepared.run()


async def _await_run(
    request: TreeRequest,
    on_event: Callable[[Row], None] | None,
    progress: OnTreeProgress | bool | None,
) -> Report:
    prepared = await asyncio.to_thread(PreparedRun, request, on_event=on_event)
    running = asyncio.ensure_future(asyncio.to_thread(prepared.run))
    with shown_progress(prepared.progress, progress):
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            prepared.stop()
            # What is in flight is seen through: nothing of it is left behind.
            await asyncio.wait([running])
            raise


def _request(
    kind: Kind,
    source: Given | Sequence[Given],
    target: Given,
    source_options: Mapping[str, object],
    target_options: Mapping[str, object],
    keywords: TreeKeywords,
) -> TreeRequest:
    return TreeRequest(
        kind=kind,
        sources=_several(source),
        target=target,
        options=options_from(kind, keywords),
        source_options=source_options,
        target_options=target_options,
    )


def _open_backup(request: TreeRequest, layers: tuple[Layer, ...]) -> Side | None:
    folder = request.options.backup_to
    if folder is None:
        return None
    if request.options.spark is not None or load_settings().spark.master is not None:
        raise Unsupported(
            "backup_to is not known on Spark yet", hint="Run it here, on threads, without --spark."
        )
    return open_target(folder, request.target_options, layers)


def _several(given: Given | Sequence[Given]) -> tuple[Given, ...]:
    if isinstance(given, str | os.PathLike | HasService):
        return (given,)
    return tuple(given)


def _cluster_of(options: TreeOptions, trees: Sequence[Trees]) -> Cluster | None:
    """Where a run is asked to go; nothing of Spark is even imported where it stays here."""
    spark = options.spark or load_settings().spark.master
    if spark is None or options.dry_run:
        return None
    if any(Collisions.of(each, options) is not None for each in trees):
        raise Unsupported(
            "names that differ in case only cannot be found on Spark yet",
            hint="Run it here, on threads, without --spark.",
        )
    if options.track_renames:
        raise Unsupported(
            "renames cannot be tracked on Spark yet",
            hint="Run it here, on threads, without --spark, or without --track-renames.",
        )
    from calque.transfer.run.cluster import Cluster

    return Cluster(spark, shared_fs=options.shared_fs)
