"""Rows of a report out of decisions, and of what became of them."""

from __future__ import annotations

from calque.errors import CalqueError
from calque.transfer.model import Decision, Outcome, Pair, Row
from calque.values import Metadata


def copied_row(decision: Decision, pair: Pair, made: Metadata, route: str, seconds: float) -> Row:
    """The row of an object that was copied; ``pair`` has the source as it was copied."""
    source = pair.source
    assert source is not None
    checksum = made.checksum
    return Row(
        path=decision.path,
        outcome="copied",
        rule=decision.rule,
        why=decision.why,
        size=source.size,
        target_size=made.size,
        source_etag=source.etag,
        target_etag=made.etag,
        checksum=f"{checksum.algorithm}:{checksum.value}" if checksum else None,
        version=made.version,
        route=route,
        seconds=round(seconds, 6),
        target=pair.into,
    )


def failed_row(decision: Decision, error: CalqueError, seconds: float) -> Row:
    """The row of an object that could not be handled."""
    return _row(
        decision,
        "failed",
        error.message,
        seconds=round(seconds, 6),
        error=type(error).__name__,
    )


def kept_row(decision: Decision) -> Row:
    """The row of an object that is right as it is, or was not touched."""
    return _row(decision, "up to date" if decision.step == "keep" else "skipped", decision.why)


def predicted_row(decision: Decision, withheld: str = "") -> Row:
    """The row that an act will have, or would have had."""
    outcome: Outcome = "copied" if decision.step == "copy" else "deleted"
    return _row(decision, "kept" if withheld else outcome, withheld or decision.why)


def _row(
    decision: Decision,
    outcome: Outcome,
    why: str,
    *,
    seconds: float = 0.0,
    error: str | None = None,
) -> Row:
    source, target = decision.pair.source, decision.pair.target
    return Row(
        path=decision.path,
        outcome=outcome,
        rule=decision.rule,
        why=why,
        size=decision.size,
        target_size=target.size if target else None,
        source_etag=source.etag if source else None,
        target_etag=target.etag if target else None,
        seconds=seconds,
        error=error,
        target=decision.pair.into,
    )
