"""The documents of S3: written and read here, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from calque.gateway.errors import S3Error

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n'

MOST_ELEMENTS = 100_000
"""Those of 10,000 parts with every checksum, and some."""
DEEPEST = 32

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\ufffe\uffff]")


def write_document(root: str, content: Mapping[str, Any], *, namespace: bool = True) -> bytes:
    """A document: maps are elements, lists are repeated ones, None is left out."""
    opening = f'{root} xmlns="{NAMESPACE}"' if namespace else root
    return f"{HEADER}<{opening}>{_write(content)}</{root}>".encode()


def _write(content: Mapping[str, Any]) -> str:
    return "".join(_write_element(name, value) for name, value in content.items())


def _write_element(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "".join(_write_element(name, each) for each in value)
    if isinstance(value, Mapping):
        return f"<{name}>{_write(value)}</{name}>"
    return f"<{name}>{_text(value)}</{name}>"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return format_time(value)
    # Names may hold what XML has no way to write; S3 writes references to it all the same, and
    # clients that care ask for encoding-type=url.
    return _CONTROL.sub(lambda found: f"&#x{ord(found[0]):x};", escape(str(value)))


def is_text(value: str) -> bool:
    """Whether XML has a way to write it."""
    return not _CONTROL.search(value)


def format_time(moment: datetime) -> str:
    """A time with milliseconds, as S3 writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class _Builder(ElementTree.TreeBuilder):
    """Builds no more than a request can mean: an element takes far more room than its text."""

    def __init__(self) -> None:
        super().__init__()
        self._count = self._depth = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> ElementTree.Element:
        self._count += 1
        self._depth += 1
        if self._count > MOST_ELEMENTS or self._depth > DEEPEST:
            raise malformed("It has too many elements.")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ElementTree.Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, pubid: str, system: str) -> None:
        # Entities can only be declared there: none can blow up, none can read a file.
        raise S3Error("MalformedXML", "A document type is not allowed in a request.")


class Element:
    """An element that was sent, by plain names, whatever its namespace."""

    def __init__(self, node: ElementTree.Element) -> None:
        self._node = node

    @property
    def name(self) -> str:
        return self._node.tag.rpartition("}")[2]

    @property
    def text(self) -> str:
        return self._node.text or ""

    def children(self, name: str | None = None) -> list[Element]:
        found = [Element(node) for node in self._node]
        return found if name is None else [each for each in found if each.name == name]

    def find(self, name: str) -> Element | None:
        return next(iter(self.children(name)), None)

    def get(self, name: str) -> str | None:
        found = self.find(name)
        return None if found is None else found.text

    def require(self, name: str) -> str:
        """The text of a child; MalformedXML when there is none."""
        found = self.get(name)
        if found is None:
            raise malformed(f"{self.name} needs a {name}.")
        return found

    def allow_only(self, names: Iterable[str]) -> None:
        """MalformedXML for a child that has no place here."""
        known = frozenset(names)
        for child in self.children():
            if child.name not in known:
                raise malformed(f"{child.name} has no place in {self.name}.")


def read_document(data: bytes, root: str) -> Element:
    """What was sent; MalformedXML unless it is well formed and its root has this name."""
    parser = ElementTree.XMLParser(target=_Builder())
    try:
        parser.feed(data)
        node = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise malformed() from error
    element = Element(node)
    if element.name != root:
        raise malformed(f"A document {root} was expected.")
    return element


def malformed(why: str = "") -> S3Error:
    text = "The XML you provided was not well-formed or did not validate against our schema."
    return S3Error("MalformedXML", f"{text} {why}".rstrip())
