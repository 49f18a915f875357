"""The SELECT of a COPY INTO: expressions over staged rows, turned into Spark SQL."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from calque.errors import StatementInvalid
from calque.load.options import METADATA_NAMES
from calque.load.work import Transformation


def read_select(
    chosen: str, alias: str | None, where: str | None, dialect: str
) -> Transformation | None:
    """``SELECT …`` up to its FROM, and its WHERE; None for ``SELECT *``, which transforms nothing.

    ``$1`` becomes ``_c1``, metadata columns ``_metadata_<kind>``; the alias of the stage goes.
    """
    text = f"{chosen} FROM _staged" + (f" WHERE {where}" if where else "")
    try:
        tree = sqlglot.parse_one(text, read=dialect)
    except SqlglotError as error:
        raise StatementInvalid(f"the SELECT cannot be read: {_first(error)}") from error
    if not isinstance(tree, exp.Select):
        raise StatementInvalid("the parenthesis after FROM holds one SELECT")
    _refuse(tree)
    if where is None and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star):
        return None
    told = tree.transform(lambda node: _rename(node, alias))
    condition = told.args.get("where")
    return Transformation(
        expressions=tuple(_bare(one).sql(dialect="spark") for one in told.expressions),
        columns=tuple(one.alias for one in told.expressions if isinstance(one, exp.Alias)),
        where=condition.this.sql(dialect="spark") if condition is not None else None,
    )


def _refuse(tree: exp.Select) -> None:
    for clause in ("group", "order", "limit", "joins", "having", "distinct"):
        if tree.args.get(clause):
            raise StatementInvalid(f"a SELECT over a stage has no {clause.upper().rstrip('S')}")
    for kind in (exp.Subquery, exp.AggFunc, exp.Window):
        found = next(tree.find_all(kind), None)
        if found is not None:
            raise StatementInvalid(
                f"a SELECT over a stage sees one row at a time: {found.sql()} is not possible"
            )
    if any(isinstance(one, exp.Star) for one in tree.expressions) and len(tree.expressions) > 1:
        raise StatementInvalid("name the columns: * cannot stand beside other expressions")


def _rename(node: exp.Expression, alias: str | None) -> exp.Expression:
    position = _position(node)
    if position is not None:
        return exp.column(f"_c{position}")
    if isinstance(node, exp.Column):
        kind = METADATA_NAMES.get(".".join(part.name for part in node.parts).upper())
        if kind is not None:
            return exp.column(f"_metadata_{kind.value}")
        if alias is not None and node.table.lower() == alias.lower():
            return exp.column(node.this.copy())
    return node


def _position(node: exp.Expression) -> str | None:
    """The number of ``$1`` or ``t.$1``."""
    inner = node.this if isinstance(node, exp.Column) else node
    if isinstance(inner, exp.Parameter) and isinstance(inner.this, exp.Literal):
        return str(inner.this.this)
    return None


def _bare(one: exp.Expression) -> exp.Expression:
    return one.this if isinstance(one, exp.Alias) else one


def _first(error: SqlglotError) -> str:
    return str(error).splitlines()[0]
