"""Is a plan of PostgreSQL linear in the rows that it meets? Judged from EXPLAIN's JSON.

A nested loop goes through its inner side once for each row of its outer one. That is linear
when one of the sides is a single row, or when the inner one is entered through an index by
what the outer one found. All else is quadratic, however few rows the planner expects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Plan = dict[str, Any]
UniqueIndexes = Mapping[str, int]
"""How many columns or expressions each has."""

UNIQUE_INDEXES = (
    "SELECT c.relname, i.indnkeyatts FROM pg_index i"
    " JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indisunique"
)


def quadratic_joins(plan: Plan, unique: UniqueIndexes) -> list[str]:
    """The nested loops below ``plan`` that are not linear, each in a few words."""
    return [
        f"{_name(outer)} × {_name(inner)}"
        for node in _nodes(plan)
        if node["Node Type"] == "Nested Loop"
        for outer, inner in [_sides(node)]
        if not (_is_one_row(outer, unique) or _is_entered(node, outer, inner, unique))
    ]


def _nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


def _sides(node: Plan) -> tuple[Plan, Plan]:
    sides = {child["Parent Relationship"]: child for child in node["Plans"]}
    return sides["Outer"], sides["Inner"]


def _is_one_row(plan: Plan, unique: UniqueIndexes) -> bool:
    """Whether ``plan`` gives a row at most, whatever the tables hold."""
    children = [child for child in plan.get("Plans", []) if _feeds(child)]
    kind = plan["Node Type"]
    if kind == "Aggregate" and plan["Strategy"] == "Plain":
        return True
    if kind in ("Index Scan", "Index Only Scan"):
        equal = len(re.findall(r" = (?!ANY)", plan.get("Index Cond", "")))
        return equal == unique.get(plan["Index Name"])
    if kind == "Result" and not children:
        return True
    return bool(children) and all(_is_one_row(child, unique) for child in children)


def _feeds(child: Plan) -> bool:
    return child["Parent Relationship"] in ("Outer", "Inner", "Subquery")


def _is_entered(node: Plan, outer: Plan, inner: Plan, unique: UniqueIndexes) -> bool:
    """Whether each outer row reads a row of the inner side, or only those that join with it."""
    if _is_one_row(inner, unique):
        return True
    names = {each["Alias"] for each in _nodes(outer) if "Alias" in each}
    conditions = [each.get("Index Cond", "") for each in _nodes(inner)]
    by_outer = any(re.search(rf"\b{name}\.", text) for name in names for text in conditions)
    return by_outer and "Join Filter" not in node


def _name(plan: Plan) -> str:
    return " ".join(plan[key] for key in ("Node Type", "Alias") if key in plan)
