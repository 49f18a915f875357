"""The observers of upkeep, and what they found, to compare one way of scanning with another."""

from __future__ import annotations

from typing import Any

from calque.store.nodes.bloom import BloomShape
from calque.store.upkeep.audit_sample import AuditSample
from calque.store.upkeep.piece_filters import PieceFilters
from calque.store.upkeep.scan import Observer
from calque.store.upkeep.segment_health import SegmentHealth
from calque.store.upkeep.tally import SegmentTally
from tests.store.upkeep.kept_store import KeptStore


def observers(kept: KeptStore) -> list[Observer]:
    nodes = {each.alias: each.node_id for each in kept.store.endpoint.admin.nodes()}
    shapes = {alias: BloomShape.of(200, 77) for alias in nodes}
    healthy = set(list(nodes)[:4])
    return [
        PieceFilters(nodes, shapes),
        SegmentTally(),
        SegmentHealth(healthy, set(nodes) - healthy, 0),
        AuditSample(b"seed", 0),
    ]


def found(seen: list[Observer]) -> list[Any]:
    filters, tally, health, sample = (vars(each) for each in seen)
    return [
        {alias: each.table for alias, each in filters["filters"].items()},
        tally,
        health,
        sample,
    ]
