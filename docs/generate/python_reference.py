"""The reference of the Python API: the public face, and every class of ours that it speaks of."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, get_args, is_typeddict

import calque

HEAD = """\
# The Python API

What `import calque` gives, and the classes that its functions take and return. This page is made
from the code: signatures and docstrings are those you see in an editor.
"""

PIPE = "\\|"
"""A bar in a cell of a table."""

SPOKEN_TO = {"Project", "Copy", "MultipartUpload"}
"""Classes that are no part of the public face and whose methods users call all the same."""

INNER = (
    "calque.operator.service",
    "calque.store.metainfo",
    "calque.store.nodes.",
    "calque.store.uplink.encryption.blocks",
    "calque.store.uplink.encryption.paths",
    "calque.store.uplink.verbs.rewrap",
    "calque.loader.model.plan",
)
"""Where classes lie that are passed between our own parts."""


def render_python() -> str:
    """The page, in Markdown: functions, classes, then values and errors."""
    public = {name: getattr(calque, name) for name in calque.__all__ if name[0] != "_"}
    functions = {name: it for name, it in public.items() if inspect.isfunction(it)}
    classes = {name: it for name, it in public.items() if inspect.isclass(it)}
    parts = [HEAD, "## Functions"]
    for name, function in sorted(functions.items()):
        parts += [f"### calque.{name}", *_callable(f"calque.{name}", function)]
    parts += ["## Classes"]
    for name, kind in sorted(classes.items()):
        parts += [f"### calque.{name}", *_class(name, kind)]
    parts += ["## Values that they take and return"]
    for kind in find_values([*functions.values(), *classes.values()]):
        parts += [f"### {kind.__module__}.{kind.__name__}"]
        parts += _class(kind.__name__, kind)
    parts += ["## calque.errors", _doc(calque.errors), *_errors()]
    return "\n\n".join(part for part in parts if part) + "\n"


def find_values(roots: list[Any]) -> list[type]:
    """Classes of ours that the roots take and return, and what those give in turn, by name."""
    known = {root for root in roots if inspect.isclass(root)}
    waiting = [kind for root in roots for kind in _named_in(root, parameters=True)]
    seen: set[type] = set()
    while waiting:
        kind = waiting.pop()
        if kind not in seen and kind not in known and not _is_inner(kind):
            seen.add(kind)
            waiting += _named_in(kind, parameters=kind.__name__ in SPOKEN_TO)
    return sorted(seen, key=lambda kind: (kind.__name__, kind.__module__))


def _is_inner(kind: type) -> bool:
    """Seams between our own parts, which nobody calls, and errors, which have a table."""
    return (
        issubclass(kind, Exception)
        or kind.__module__.startswith(INNER)
        or getattr(kind, "_is_protocol", False)
    )


def public_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties of a class's own, and of bases of ours, that have no underscore."""
    shown: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("calque"):
            continue
        for name, member in vars(base).items():
            plain = getattr(member, "__func__", member)
            if name[0] == "_" or name in shown:
                continue
            if inspect.isfunction(plain) or isinstance(member, property):
                shown.add(name)
                yield name, member


def _named_in(thing: Any, *, parameters: bool) -> Iterator[type]:
    """Classes in its signature, or in its fields and those of its methods and properties."""
    if not inspect.isclass(thing):
        hints = _hints(thing)
        yield from (
            kind
            for name, hint in hints.items()
            if parameters or name == "return"
            for kind in _classes_of(hint)
        )
        return
    if _fields(thing):
        yield from (kind for hint in _hints(thing).values() for kind in _classes_of(hint))
    for _, member in public_members(thing):
        plain = member.fget if isinstance(member, property) else member
        yield from _named_in(getattr(plain, "__func__", plain), parameters=parameters)


def _hints(thing: Any) -> dict[str, Any]:
    """Annotations as types; what only type checkers import is imported here, if it is ours."""
    module = sys.modules[thing.__module__]
    names = _Names(module)
    return {
        name: eval(text, {}, names) if isinstance(text, str) else text
        for name, text in inspect.get_annotations(thing).items()
    }


class _Names(dict[str, Any]):
    """The names of a module, those under ``TYPE_CHECKING`` among them."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(vars(builtins) | vars(module))
        self._module = module

    def __missing__(self, name: str) -> Any:
        for node in ast.walk(ast.parse(inspect.getsource(self._module))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calque"):
                for one in node.names:
                    if name == (one.asname or one.name):
                        return getattr(import_module(str(node.module)), one.name)
        return Any  # of a library that need not be installed


def _classes_of(hint: Any) -> Iterator[type]:
    is_class = inspect.isclass(hint) and not isinstance(hint, types.GenericAlias)
    if is_class and hint.__module__.startswith("calque.") and hint.__name__[0] != "_":
        yield hint
    for inner in get_args(hint):
        yield from _classes_of(inner)


def _callable(name: str, function: Any) -> Iterator[str]:
    yield f"```python\n{_signature(name, function)}\n```"
    yield _doc(function)


def _signature(name: str, function: Any) -> str:
    found = inspect.signature(function)
    words: list[str] = []
    for one in found.parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        words.append(_parameter(one))
    returns = found.return_annotation
    tail = "" if returns is found.empty else f" -> {_spell(returns)}"
    line = f"{name}({', '.join(words)}){tail}"
    if len(line) <= 90:
        return line
    return f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){tail}"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = "" if one.annotation is one.empty else f": {_spell(one.annotation)}"
    default = one.default if not isinstance(one.default, types.MappingProxyType) else {}
    return f"{stars}{one.name}{kind}" + ("" if default is one.empty else f" = {default!r}")


def _class(name: str, kind: type) -> Iterator[str]:
    yield _doc(kind)
    if members := _fields(kind):
        rows = [
            f"| `{field}` | `{_spell(its).replace('|', PIPE)}` |" for field, its in members.items()
        ]
        yield "\n".join(["| field | type |", "|---|---|", *rows])
    for member_name, member in public_members(kind):
        if isinstance(member, property):
            returns = inspect.signature(member.fget).return_annotation if member.fget else ""
            yield f"#### {name}.{member_name}"
            yield f"```python\n{name}.{member_name}: {_spell(returns)}\n```"
            yield _doc(member)
        else:
            plain = getattr(member, "__func__", member)
            yield f"#### {name}.{member_name}"
            yield from _callable(f"{name}.{member_name}", plain)


def _fields(kind: type) -> dict[str, Any]:
    """Fields of a dataclass; keywords of a dictionary that stands for a signature."""
    if is_dataclass(kind):
        return {one.name: one.type for one in fields(kind) if one.name[0] != "_"}
    return inspect.get_annotations(kind) if is_typeddict(kind) else {}


def _errors() -> Iterator[str]:
    rows = ["| error | is a | what it means |", "|---|---|---|"]
    for name, kind in vars(calque.errors).items():
        if inspect.isclass(kind) and issubclass(kind, Exception) and name[0] != "_":
            bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
            rows.append(f"| `{name}` | {bases} | {_doc(kind).split(chr(10) + chr(10))[0]} |")
    yield "\n".join(row.replace("\n", " ") for row in rows)


def _spell(annotation: Any) -> str:
    annotation = getattr(annotation, "__forward_arg__", annotation)
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\s+", " ", text).replace("'", "")


def _doc(thing: Any) -> str:
    """A docstring as Markdown: roles are code, and named parameters below a line are a list."""
    text = inspect.cleandoc(inspect.getdoc(thing) or "")
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    lines, is_list = [], False
    for line, above in zip(text.splitlines(), ["", *text.splitlines()], strict=False):
        if line.startswith("    ") and above.endswith(":") and not above.endswith("::"):
            is_list = True
            lines.append("")
        elif not line.startswith("    "):
            is_list = False
        item = re.match(r"    ([\w, ]+): (.*)", line) if is_list else None
        lines.append(f"- `{item[1]}`: {item[2]}" if item else line)
    return re.sub(r"::$", ":", "\n".join(lines), flags=re.MULTILINE)
