"""Parts and plans as the JSON of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calque.errors import CheckpointInvalid
from calque.operator.drivers.verbs import Part
from calque.values import PartPlan


def plan_to_json(plan: PartPlan) -> dict[str, int]:
    return {"size": plan.size, "part_size": plan.part_size}


def parts_to_json(parts: Iterable[Part]) -> list[list[Any]]:
    ordered = sorted(parts, key=lambda part: part.number)
    return [
        [part.number, part.etag, part.size, part.checksum, *([part.crc] if part.crc else [])]
        for part in ordered
    ]


def plan_of(state: Mapping[str, Any], *, size: int) -> PartPlan:
    """The plan of a checkpoint; CheckpointInvalid where it cannot be of an object of this size."""
    try:
        plan = PartPlan(int(state["plan"]["size"]), int(state["plan"]["part_size"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointInvalid("the checkpoint's part plan cannot be read") from error
    if plan.size != size or plan.part_size < 1:
        raise CheckpointInvalid("the checkpoint's part plan is of another object")
    return plan


def parts_of(state: Mapping[str, Any]) -> dict[int, Part]:
    """The parts that a checkpoint knows."""
    try:
        known = [
            Part(int(number), str(etag), int(size), *map(_text_or_none, checksums))
            for number, etag, size, *checksums in state.get("parts", ())
        ]
    except (TypeError, ValueError) as error:
        raise CheckpointInvalid("the checkpoint's parts cannot be read") from error
    return {part.number: part for part in known}


def _text_or_none(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"a checksum is text, not {value!r}")
    return value


def select_fitting(plan: PartPlan, held: Mapping[int, Part]) -> dict[int, Part]:
    """Of the parts that a server holds, those that the plan has, whole."""
    return {
        number: part
        for number, part in held.items()
        if 1 <= number <= plan.count and part.size == plan.range_of(number).length
    }
