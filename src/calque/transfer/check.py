"""Whether two trees are equal: compared, and nothing is changed.

``=`` equal, ``+`` only at the source, ``-`` only at the target, ``*`` different, ``!`` could not be
told. A row says by what it was decided.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, takewhile, zip_longest
from typing import Any, Literal, TypeVar, Unpack, get_args

from calque.errors import CalqueError, InvalidInput, NotFound, Unsupported
from calque.operator.http.digest import ALGORITHMS, start_hash
from calque.operator.interruptible import result_of
from calque.operator.layers import ConcurrencyLimit, default_layers
from calque.operator.read import pinned_options, read_on
from calque.operator.service import Service
from calque.transfer.api import NONE
from calque.transfer.model import Pair, Row
from calque.transfer.plan.copied_before import Remembered
from calque.transfer.plan.pairing import pair_up
from calque.transfer.plan.places import open_target
from calque.transfer.plan.plan import Plan, Trees
from calque.transfer.plan.rules import Comparison, checksums
from calque.transfer.plan.side import Side
from calque.transfer.report.html import render_html
from calque.transfer.report.progress import TreeProgress
from calque.transfer.report.report_file import read_report
from calque.transfer.report.shown_progress import OnTreeProgress, shown_progress
from calque.transfer.request.keywords import TreeKeywords, options_from
from calque.transfer.request.options import By, Compare, TreeOptions
from calque.transfer.request.tree_request import Given, TreeRequest
from calque.values import ByteRange, Checksum, Metadata

Sign = Literal["=", "+", "-", "*", "!"]

_WORDS: dict[Sign, str] = {
    "=": "equal",
    "+": "only at the source",
    "-": "only at the target",
    "*": "different",
    "!": "not to be told",
}
EQUAL, DIFFERENT, UNSURE = 0, 1, 3
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class CheckRow:
    """What was found of one path."""

    path: str
    sign: Sign
    rule: str
    why: str = ""
    source_size: int | None = None
    target_size: int | None = None


@dataclass(slots=True)
class CheckReport:
    """Two trees, compared."""

    sources: tuple[str, ...]
    target: str
    by: str
    counts: dict[Sign, int] = field(default_factory=lambda: dict.fromkeys(get_args(Sign), 0))
    rules: dict[str, int] = field(default_factory=dict)
    """How many were found equal by which rule."""

    def add(self, row: CheckRow) -> None:
        self.counts[row.sign] += 1
        if row.sign == "=":
            self.rules[row.rule] = self.rules.get(row.rule, 0) + 1

    @property
    def exit_code(self) -> int:
        """0 equal, 1 different, 3 could not tell of some."""
        if self.counts["+"] or self.counts["-"] or self.counts["*"]:
            return DIFFERENT
        return UNSURE if self.counts["!"] else EQUAL

    @property
    def equal(self) -> bool:
        return self.exit_code == EQUAL

    def _repr_html_(self) -> str:
        """For notebooks: what was compared, and how many are equal, missing, different."""
        title = f"check {', '.join(self.sources)} → {self.target}, by {self.by}"
        rows = ((words, f"{self.counts[sign]:,}") for sign, words in _WORDS.items())
        return render_html(title, (), ("objects that are", "count"), rows)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "sources": list(self.sources), "exit_code": self.exit_code}


def check_trees(
    source: Given | Sequence[Given],
    target: Given,
    *,
    by: By = "listing",
    on_event: Callable[[CheckRow], None] | None = None,
    progress: OnTreeProgress | bool | None = None,
    source_options: Mapping[str, object] = NONE,
    target_options: Mapping[str, object] = NONE,
    **keywords: Unpack[TreeKeywords],
) -> CheckReport:
    """Compare two trees, between any two services; nothing is written anywhere.

    ``on_event`` gets a row for each path; ``progress`` is as of :func:`calque.copy_tree`. What
    could not be told of (an object that cannot be read, no checksum in common) is a row too, and
    never counts as equal.
    """
    request = _request(source, target, by, source_options, target_options, keywords)
    done = TreeProgress(phase="comparing")
    with shown_progress(done, progress):
        return check_request(request, by, on_event, done)


async def check_trees_async(
    source: Given | Sequence[Given],
    target: Given,
    *,
    by: By = "listing",
    on_event: Callable[[CheckRow], None] | None = None,
    progress: OnTreeProgress | bool | None = None,
    source_options: Mapping[str, object] = NONE,
    target_options: Mapping[str, object] = NONE,
    **keywords: Unpack[TreeKeywords],
) -> CheckReport:
    """:func:`check_trees`, awaited; a cancelled task waits for what is being compared.

    ``on_event`` is called on a thread of the check.
    """
    request = _request(source, target, by, source_options, target_options, keywords)
    done, stopping = TreeProgress(phase="comparing"), threading.Event()
    check = partial(check_request, request, by, on_event, done, stopping.is_set)
    running = asyncio.ensure_future(asyncio.to_thread(check))
    with shown_progress(done, progress):
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stopping.set()
            await asyncio.wait([running])
            raise


def _request(
    source: Given | Sequence[Given],
    target: Given,
    by: By,
    source_options: Mapping[str, object],
    target_options: Mapping[str, object],
    keywords: TreeKeywords,
) -> TreeRequest:
    if by not in get_args(By):
        raise InvalidInput(f"trees cannot be compared by {by!r}", hint=f"One of {get_args(By)}.")
    several = not isinstance(source, str) and isinstance(source, Sequence)
    return TreeRequest(
        kind="cp",
        sources=tuple(source) if several else (source,),  # type: ignore[arg-type]
        target=target,
        options=options_from("cp", keywords),
        source_options=source_options,
        target_options=target_options,
    )


def check_request(
    request: TreeRequest,
    by: By,
    on_event: Callable[[CheckRow], None] | None = None,
    progress: TreeProgress | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> CheckReport:
    """:func:`check_trees`, of a request that was made before; one that is stopped is not whole."""
    options = request.options
    told = _Telling(on_event, progress)
    layers = default_layers(limit=ConcurrencyLimit(options.concurrent))
    target = open_target(request.target, request.target_options, layers)
    trees = pair_up(request, target, layers)
    report = CheckReport(tuple(each.source.location() for each in trees), target.location(), by)
    try:
        rows = chain.from_iterable(_check(each, options, by) for each in trees)
        for row in takewhile(lambda row: not is_stopped(), rows):
            report.add(row)
            told(row)
    finally:
        for each in trees:
            each.source.service.close()
            each.target.service.close()
    return report


@dataclass(frozen=True, slots=True)
class _Telling:
    """Who hears of each row."""

    on_event: Callable[[CheckRow], None] | None
    progress: TreeProgress | None

    def __call__(self, row: CheckRow) -> None:
        if self.progress is not None:
            self.progress.add_listed()
        if self.on_event is not None:
            self.on_event(row)


def _check(trees: Trees, options: TreeOptions, by: By) -> Iterator[CheckRow]:
    odd: list[CheckRow] = []

    def tell(path: str, kind: str | CalqueError) -> None:
        if isinstance(kind, NotFound):
            odd.append(CheckRow(path, "!", "kind", "it is not at the source"))
        elif isinstance(kind, CalqueError):
            odd.append(CheckRow(path, "!", "kind", kind.message))

    remembered = Remembered.of(trees.source, trees.target) if by == "listing" else None
    plan = Plan(trees, options, remembered, tell)
    checking = _Checking(trees, by, remembered)
    taken = (pair for pair in plan.pairs() if _is_taken(trees, pair))
    try:
        yield from _in_parallel(checking.row, taken, options.concurrent)
        yield from odd
    finally:
        if remembered is not None:
            remembered.close()


def _is_taken(trees: Trees, pair: Pair) -> bool:
    """Whether filters take a path; limits are asked of the source, where it has the object."""
    entry = pair.source or pair.target
    assert entry is not None
    if entry.is_dir or entry.path.endswith("/"):
        return False
    return trees.takes_path(pair.path) and trees.filters.takes_entry(entry)


def _in_parallel(work: Callable[[A], B], items: Iterable[A], concurrent: int) -> Iterator[B]:
    """Results in the order of the items, some ahead of whoever takes them."""
    waiting: deque[Future[B]] = deque()
    with ThreadPoolExecutor(concurrent, thread_name_prefix="calque-check") as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= 4 * concurrent:
                yield result_of(waiting.popleft())
        while waiting:
            yield result_of(waiting.popleft())


@dataclass(frozen=True, slots=True)
class _Checking:
    """How pairs of two trees are compared."""

    trees: Trees
    by: By
    remembered: Remembered | None

    def row(self, pair: Pair) -> CheckRow:
        source, target = pair.source, pair.target
        sizes = (source.size if source else None, target.size if target else None)
        path = self.trees.label + pair.path
        if target is None:
            return CheckRow(path, "+", "new", "", *sizes)
        if source is None:
            return CheckRow(path, "-", "only at the target", "", *sizes)
        if source.size != target.size:
            return CheckRow(path, "*", "size", "", *sizes)
        try:
            sign, rule = self._compare(pair, source, target)
        except CalqueError as error:
            return CheckRow(path, "!", self.by, error.message, *sizes)
        return CheckRow(path, sign, rule, "", *sizes)

    def _compare(self, pair: Pair, source: Metadata, target: Metadata) -> tuple[Sign, str]:
        if self.by == "size":
            return "=", "size"
        if self.by == "download":
            ours = _pieces(self.trees.source.service, source)
            theirs = _pieces(self.trees.target.service, target)
            return ("=" if _same_bytes(ours, theirs) else "*"), "download"
        mode: Compare = "checksum" if self.by == "checksum" else "default"
        sides = (self.trees.source, self.trees.target)
        decision = Comparison(mode, *sides, self.remembered).decide(pair)
        if decision.rule == "time":
            return "=", "size"  # times say which is newer, not whether they are equal
        return ("=" if decision.step == "keep" else "*"), decision.rule


def _pieces(service: Service, entry: Metadata) -> Iterator[bytes]:
    return read_on(service, entry.path, pinned_options(service, entry, ByteRange()))


def _same_bytes(one: Iterator[bytes], two: Iterator[bytes]) -> bool:
    """Whether two streams are equal, however each is cut into pieces."""
    return all(left == right for left, right in zip_longest(_recut(one), _recut(two)))


def _recut(pieces: Iterator[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)


# Against a report


def check_against(
    report: str,
    target: Given,
    *,
    target_options: Mapping[str, object] = NONE,
    concurrent: int = 16,
    on_event: Callable[[CheckRow], None] | None = None,
    progress: TreeProgress | None = None,
) -> CheckReport:
    """Prove a target by the checksums that an earlier run has recorded, without its source.

    Checksums that the target's service does not tell are made of its bytes. A row without one, or
    with one that cannot be made here, is not told of.
    """
    layers = default_layers(limit=ConcurrencyLimit(concurrent))
    side = open_target(target, target_options, layers)
    found = CheckReport((str(report),), side.location(), "report")
    told = _Telling(on_event, progress)
    rows = (row for row in read_report(report) if row.outcome in ("copied", "up to date"))
    try:
        for row in _in_parallel(lambda row: _prove(side, row), rows, concurrent):
            found.add(row)
            told(row)
    finally:
        side.service.close()
    return found


def _prove(side: Side, row: Row) -> CheckRow:
    path = row.target or row.path
    size = row.size if row.target_size is None else row.target_size
    try:
        entry = side.service.stat(side.key(path))
    except FileNotFoundError:
        return CheckRow(row.path, "+", "new", "", size)
    except CalqueError as error:
        return CheckRow(row.path, "!", "checksum", error.message, size)
    sizes = (size, entry.size)
    if size is not None and entry.size != size:
        return CheckRow(row.path, "*", "size", "", *sizes)
    if row.checksum is None:
        why = "the report has no checksum of it"
        return CheckRow(row.path, "!", "checksum", why, *sizes)
    algorithm, _, value = row.checksum.partition(":")
    try:
        actual = _checksum_of(side, entry, algorithm)
    except CalqueError as error:
        return CheckRow(row.path, "!", "checksum", error.message, *sizes)
    same = actual == Checksum(algorithm, value)
    return CheckRow(row.path, "=" if same else "*", "checksum", "", *sizes)


def _checksum_of(side: Side, entry: Metadata, algorithm: str) -> Checksum:
    told = checksums(side.service.capability, entry).get(algorithm)
    if told is not None:
        return Checksum(algorithm, told)
    if algorithm not in ALGORITHMS:
        raise Unsupported(f"a checksum {algorithm} is not told by {side.service.scheme}")
    digest = start_hash(algorithm)
    for piece in _pieces(side.service, entry):
        digest.update(piece)
    return Checksum(algorithm, base64.b64encode(digest.digest()).decode())
