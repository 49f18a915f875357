"""The SELECT of a COPY INTO: expressions over staged rows, turned into Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from calque.errors import StatementInvalid
from calque.loader.model.field_path import FieldPath
from calque.loader.model.plan import Transformation
from calque.loader.request.option_values import METADATA_NAMES

_DOLLAR = re.compile(
    r"""('(?:[^'\\]|\\.|'')*'|"[^"]*"|\$\$.*?\$\$)|\$(\d+)|\b(METADATA\$\w+)""", re.DOTALL | re.I
)
_PLACE = "_calque_place_"
"""Stands for the ``$`` of ``$1`` while a SELECT is read: dialects disagree on what follows it."""

_DECIMALS = ("TO_DECIMAL", "TO_NUMERIC", "TRY_TO_NUMBER", "TRY_TO_DECIMAL", "TRY_TO_NUMERIC")
_CASTS = {"TO_BOOLEAN": "BOOLEAN", "TO_DOUBLE": "DOUBLE"}
"""Functions that Spark has as casts only; ``TRY_`` may stand before them."""


def read_select(
    chosen: str, alias: str | None, where: str | None, dialect: str
) -> Transformation | None:
    """``SELECT …`` up to its FROM, and its WHERE; None for ``SELECT *``, which transforms nothing.

    ``$1`` becomes a name in backquotes, ``$1:a.b`` too, metadata columns ``_metadata_<kind>``; the
    alias of the stage goes.
    """
    text = _without_dollars(f"{chosen} FROM _staged" + (f" WHERE {where}" if where else ""))
    try:
        tree = sqlglot.parse_one(text, read=dialect)
    except SqlglotError as error:
        raise StatementInvalid(f"the SELECT cannot be read: {_first_line(error)}") from error
    if not isinstance(tree, exp.Select):
        raise StatementInvalid("the parenthesis after FROM holds one SELECT")
    _refuse(tree)
    if where is None and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star):
        return None
    told = tree.transform(lambda node: _rename(node, alias))
    paths = _name_paths(told, any_bracket=dialect == "snowflake")
    _make_exact(told)
    condition = told.args.get("where")
    return Transformation(
        expressions=tuple(_strip_alias(one).sql(dialect="spark") for one in told.expressions),
        columns=tuple(one.alias for one in told.expressions if isinstance(one, exp.Alias)),
        where=condition.this.sql(dialect="spark") if condition is not None else None,
        paths=paths,
    )


def _without_dollars(text: str) -> str:
    """``$1`` and ``METADATA$…`` as names that every dialect reads; what stands in quotes stays."""

    def plain(found: re.Match[str]) -> str:
        if found[2]:
            return f"{_PLACE}{found[2]}"
        kind = METADATA_NAMES.get((found[3] or "").upper())
        return f"_metadata_{kind.value}" if kind is not None else found[0]

    return _DOLLAR.sub(plain, text)


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
    if not isinstance(node, exp.Column):
        return node
    names = [part.name for part in node.parts]
    kind = METADATA_NAMES.get(".".join(names).upper())
    if kind is not None:
        return exp.column(f"_metadata_{kind.value}")
    has_alias = alias is not None and len(names) > 1 and names[0].lower() == alias.lower()
    first, *inner = names[1:] if has_alias else names
    if first.startswith(_PLACE):
        return _field(_quoted_column("$" + first.removeprefix(_PLACE)), inner)
    if has_alias:
        return (
            exp.Dot.build([part.copy() for part in node.parts[1:]])
            if inner
            else (exp.column(node.this.copy()))
        )
    return node


def _field(column: exp.Expression, names: Sequence[str]) -> exp.Expression:
    if not names:
        return column
    keys = [exp.JSONPathKey(this=name) for name in names]
    path = exp.JSONPath(expressions=[exp.JSONPathRoot(), *keys])
    return exp.JSONExtract(this=column, expression=path)


def _name_paths(tree: exp.Expression, *, any_bracket: bool) -> tuple[FieldPath, ...]:
    """Put one name in the place of each path; the paths, each once.

    ``any_bracket``: ``a['b']`` and ``a[0]`` are paths too, which give NULL where nothing is there;
    elsewhere they are Spark's own and an index beyond the end is an error.
    """
    named: dict[str, FieldPath] = {}
    for node in reversed(list(tree.find_all(exp.JSONExtract, exp.GetExtract, exp.Bracket))):
        steps, root = _steps(node), node.this
        is_path = any_bracket or not isinstance(node, exp.Bracket) or root.name.startswith("$")
        if steps is None or not is_path:
            continue
        before = named.get(root.name) if isinstance(root, exp.Column) else None
        if before is not None and root.name == str(before):
            path = FieldPath(before.column, (*before.steps, *steps))
        elif isinstance(root, exp.Column) and not root.table:
            path = FieldPath(root.name, steps)
        else:
            node.replace(_within(root, steps))
            continue
        named[str(path)] = path
        node.replace(_quoted_column(str(path)))
    used = {column.name for column in tree.find_all(exp.Column)}
    return tuple(path for name, path in named.items() if name in used)


def _steps(node: Any) -> tuple[str | int, ...] | None:
    """Names and numbers of a path; None for an index that is itself an expression."""
    if isinstance(node, exp.JSONExtract):
        if not isinstance(node.expression, exp.JSONPath):
            return None
        return tuple(_step(part) for part in node.expression.expressions[1:])
    index = node.expression if isinstance(node, exp.GetExtract) else node.expressions[0]
    if isinstance(node, exp.Bracket) and len(node.expressions) != 1:
        return None
    if isinstance(index, exp.Literal):
        return (str(index.this) if index.is_string else int(index.this),)
    return None


def _step(part: exp.Expression) -> str | int:
    if isinstance(part, exp.JSONPathKey) and isinstance(part.this, str):
        return part.this
    if isinstance(part, exp.JSONPathSubscript) and isinstance(part.this, int | str):
        return part.this
    raise StatementInvalid(f"a path has names and numbers, not {part.sql()}")


def _within(value: exp.Expression, steps: tuple[str | int, ...]) -> exp.Expression:
    """A path into what a function gives: into the elements of an array, or into JSON text."""
    if len(steps) == 1 and isinstance(steps[0], int):
        return exp.Anonymous(this="get", expressions=[value, exp.Literal.number(steps[0])])
    text = value.this if isinstance(value, exp.ParseJSON) else value
    json = exp.Anonymous(this="parse_json", expressions=[text])
    path = exp.Literal.string(variant_path(steps))
    kind = exp.Literal.string("string")
    return exp.Anonymous(this="variant_get", expressions=[json, path, kind])


def variant_path(steps: Sequence[str | int]) -> str:
    """The steps as Spark's functions for JSON spell them."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else _key(step) for step in steps)


def _key(name: str) -> str:
    quote = "'" if '"' in name else '"'
    if quote in name:
        raise StatementInvalid(f"a path cannot have both kinds of quotes in a name: {name}")
    return f"[{quote}{name}{quote}]"


def _make_exact(tree: exp.Expression) -> None:
    """Functions that Spark lacks or rounds: numbers as decimals, never by way of a double."""
    for node in list(tree.find_all(exp.Func)):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        made = _exact(node, name.upper())
        if made is not None:
            node.replace(made)


def _exact(node: exp.Func, name: str) -> exp.Expression | None:
    tries = name.startswith("TRY_") or bool(node.args.get("safe"))
    if isinstance(node, exp.ToNumber):
        return _number(node, tries)
    if isinstance(node, exp.ParseJSON):
        return exp.Anonymous(this="parse_json", expressions=[node.this])
    if isinstance(node, exp.TsOrDsToDate) and tries:
        return _call_try_function("try_to_date", node)
    if isinstance(node, exp.StrToTime) and tries:
        return _call_try_function("try_to_timestamp", node)
    if name.removeprefix("TRY_") in _CASTS:
        value = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        return _cast(value, _CASTS[name.removeprefix("TRY_")], tries)
    if isinstance(node, exp.Anonymous) and name in _DECIMALS:
        value, *rest = node.expressions
        pattern = [rest.pop(0)] if rest and rest[0].is_string else []
        told = dict(zip(("precision", "scale"), rest, strict=False))
        return _number(exp.ToNumber(this=value, format=(pattern or [None])[0], **told), tries)
    return None


def _call_try_function(name: str, node: exp.Func) -> exp.Expression:
    """Spark's function that gives NULL for what it cannot read, the pattern in its own words."""
    pattern = Dialect.get_or_raise("spark").generator().format_time(node)
    return exp.Anonymous(
        this=name, expressions=[node.this, *([exp.Var(this=pattern)] if pattern else [])]
    )


def _number(node: exp.ToNumber, tries: bool) -> exp.Expression:
    value, pattern = node.this, node.args.get("format")
    precision, scale = node.args.get("precision"), node.args.get("scale")
    if pattern is not None and not pattern.is_string:  # TO_NUMBER(x, 10, 2) as Databricks reads it
        pattern, precision, scale = None, pattern, node.args.get("nlsparam")
    if pattern is not None:
        name = "try_to_number" if tries else "to_number"
        value = exp.Anonymous(this=name, expressions=[value, pattern])
        if precision is None:
            return value
    digits = (precision or exp.Literal.number(38)).sql(), (scale or exp.Literal.number(0)).sql()
    return _cast(value, f"DECIMAL({', '.join(digits)})", tries)


def _cast(value: exp.Expression, kind: str, tries: bool) -> exp.Expression:
    to = exp.DataType.build(kind, dialect="spark")
    if tries:
        return exp.TryCast(this=value, to=to, safe=True)
    return exp.Cast(this=value, to=to)


def _quoted_column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def _strip_alias(one: exp.Expression) -> exp.Expression:
    return one.this if isinstance(one, exp.Alias) else one


def _first_line(error: SqlglotError) -> str:
    return str(error).splitlines()[0]
