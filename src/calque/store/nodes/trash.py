"""How a node collects garbage: what is not in its filter goes to the trash, and later for good.

::

    calque-gc                   the store and the last run this node collected for
    trash/<day>/<64 hex>        pieces, by the day on which they were taken away

A piece in the trash is as good as deleted, but for ``restore``, which brings it back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from calque import faults
from calque.errors import CalqueError, FailedPrecondition, IntegrityError, NotFound
from calque.store.nodes.node import Node, StoredPiece
from calque.store.nodes.piece_filter import PieceFilter
from calque.store.nodes.pieces import piece_of_marker, piece_path

TRASH, NOTE = "trash/", "calque-gc"
KEPT = timedelta(days=7)
"""How long a piece stays in the trash."""

UNFINISHED = timedelta(days=1)
"""How old what a killed write left must be: a write that is under way is never so old."""

CLOCKS_DIFFER = timedelta(hours=24)
"""A node whose clock is further behind is not collected; the commit window has room for this."""

MANY = 100
"""So many pieces may go even if no more stay: where more would, somebody must say it is meant."""

_AT_ONCE = 4096
_DAY = "%Y%m%d"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Collected:
    """What a node did with a filter."""

    kept: int
    young: int
    """Not in the filter, and too young to be garbage."""
    trashed: int
    trashed_bytes: int


def collect_garbage(
    node: Node,
    data: bytes,
    store_id: bytes,
    now: datetime,
    *,
    dry_run: bool = False,
    many: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Collected:
    """Move to the trash what is not in the filter and old enough; nothing is deleted.

    IntegrityError for a damaged filter; FailedPrecondition for one of another store or node, of a
    run that is not newer than the last, where most pieces would go without ``many``, and where the
    node's clock is behind. Ends early when ``stopped`` says so; killed anywhere, the next run goes
    on.
    """
    wanted = PieceFilter.from_bytes(data)
    node.require_answer()
    _require_ours(node, wanted, store_id)
    kept = young = 0
    garbage: list[StoredPiece] = []
    for some in _batches(node.pieces()):
        holds = wanted.pieces.holds([each.piece for each in some])
        for each, named in zip(some, holds, strict=True):
            if named:
                kept += 1
            elif _is_young(each, wanted.older_than):
                young += 1
            else:
                garbage.append(each)
    _refuse_many(node, len(garbage), kept + young, many)
    if not dry_run:
        # Before the first piece: from now on no older filter is followed.
        _note_run(node, wanted)
        faults.point("gc.noted")
        _require_clock(node)
        garbage = _move(node, garbage, now, stopped)
    return Collected(kept, young, len(garbage), sum(each.size for each in garbage))


def restore_trash(node: Node, *, dry_run: bool = False) -> int:
    """Bring every piece of the trash back; how many. One that is there already stays."""
    restored = 0
    for path, piece in _trashed(node):
        restored += 1
        if dry_run:
            continue
        if node.root.exists(piece_path(piece)):
            node.root.delete(path)
        else:
            node.root.rename(path, piece_path(piece))
        faults.point("gc.restored")
    return restored


def empty_trash(node: Node, now: datetime, *, kept: timedelta = KEPT, dry_run: bool = False) -> int:
    """Delete what was taken away longer ago than ``kept``; how many pieces."""
    # A day is over when the next one begins: nothing goes before its whole time.
    limit = (now - kept - timedelta(days=1)).astimezone(UTC).strftime(_DAY)
    gone = 0
    for path, _ in _trashed(node):
        if path.split("/")[1] > limit:
            break
        if not dry_run:
            node.root.delete(path)
            faults.point("gc.emptied")
        gone += 1
    return gone


def remove_unfinished(node: Node, now: datetime, *, dry_run: bool = False) -> int:
    """Remove what killed writes left of pieces that never were, temporary files or parts."""
    gone = 0
    for found in node.root.leftovers():
        if found.started is not None and now - found.started >= UNFINISHED:
            if not dry_run:
                node.root.remove_leftover(found)
            gone += 1
    return gone


def _batches(pieces: Iterable[StoredPiece]) -> Iterator[list[StoredPiece]]:
    waiting = iter(pieces)
    while some := list(islice(waiting, _AT_ONCE)):
        yield some


def _trashed(node: Node) -> Iterator[tuple[str, bytes]]:
    """In the order of days; other files are passed over."""
    node.require_answer()
    for entry in list(node.root.list(TRASH)):
        piece = piece_of_marker(entry.path)
        if piece is not None and entry.path.count("/") == 2:
            yield entry.path, piece


def _require_ours(node: Node, wanted: PieceFilter, store_id: bytes) -> None:
    if wanted.node_id != node.id:
        raise FailedPrecondition(f"the filter is for another node than {node.name}")
    known, last = _read_note(node)
    if wanted.store_id != store_id or (known is not None and wanted.store_id != known):
        raise FailedPrecondition(
            f"the filter is of another store than node {node.name} belongs to",
            hint=f"If that store is gone, remove {NOTE} from the node's root.",
        )
    if wanted.run <= last:
        raise FailedPrecondition(
            f"node {node.name} has collected by a newer filter already",
            hint="Was the database put back from an older day?",
        )


def _read_note(node: Node) -> tuple[bytes | None, int]:
    try:
        text = node.ask(lambda: node.root.read(NOTE))
    except NotFound:
        return None, 0
    try:
        note = json.loads(text)
        return bytes.fromhex(note["store"]), int(note["run"])
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"{NOTE} of node {node.name} is damaged",
            hint="Remove it if the node belongs to this store.",
        ) from error


def _note_run(node: Node, wanted: PieceFilter) -> None:
    note = {"store": wanted.store_id.hex(), "run": wanted.run}
    node.root.write(NOTE, json.dumps(note).encode())


def _require_clock(node: Node) -> None:
    """FailedPrecondition where what was written a moment ago looks as if it were old."""
    written = node.root.stat(NOTE).last_modified
    if written is not None and datetime.now(UTC) - written > CLOCKS_DIFFER:
        raise FailedPrecondition(
            f"the clock of node {node.name} is at {written:%Y-%m-%d %H:%M}: its youngest pieces "
            "would be taken for garbage",
            hint="Set it right, and collect again.",
        )


def _is_young(stored: StoredPiece, older_than: int) -> bool:
    """A piece whose age nobody knows counts as young."""
    return stored.written is None or stored.written.timestamp() * 1_000_000 >= older_than


def _refuse_many(node: Node, garbage: int, staying: int, many: bool) -> None:
    if garbage > max(MANY, staying) and not many:
        raise FailedPrecondition(
            f"{garbage} pieces of node {node.name} are named by no segment, and only {staying} "
            "would stay: is this the right database?",
            hint="`calque store gc --many` takes them away; `--restore` brings them back.",
        )


def _move(
    node: Node, garbage: Sequence[StoredPiece], now: datetime, stopped: Callable[[], bool]
) -> list[StoredPiece]:
    day = f"{TRASH}{now.astimezone(UTC).strftime(_DAY)}/"
    moved = []
    for each in garbage:
        if stopped():
            break
        try:
            node.root.rename(piece_path(each.piece), day + each.piece.hex())
        except NotFound:
            continue  # deleted in the meantime
        except CalqueError as error:
            _log.warning("node %s keeps garbage %s: %s", node.name, each.piece.hex(), error)
            continue
        moved.append(each)
        faults.point("gc.moved")
    return moved
